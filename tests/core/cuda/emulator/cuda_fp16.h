// float16, as the CPU's kernels convert it.
#pragma once

#include "qact/core/cpu/narrow.h"

using __half = qact::core::cpu::half_bits;

inline float __half2float(__half v) { return qact::core::cpu::widen(v); }
inline __half __float2half_rn(float v) { return qact::core::cpu::narrow<__half>(v); }
