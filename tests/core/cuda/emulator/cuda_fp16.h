// float16, as the CPU's kernels convert it.
#pragma once

#include "tests/core/narrow.h"

using __half = qact::core::testing::half_bits;

inline float __half2float(__half v) { return qact::core::testing::widen(v); }
inline __half __float2half_rn(float v) { return qact::core::testing::narrow<__half>(v); }
