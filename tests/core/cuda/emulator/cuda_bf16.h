// bfloat16, as the CPU's kernels convert it.
#pragma once

#include "tests/core/narrow.h"

using __nv_bfloat16 = qact::core::testing::bfloat16_bits;

inline float __bfloat162float(__nv_bfloat16 v) { return qact::core::testing::widen(v); }
inline __nv_bfloat16 __float2bfloat16_rn(float v) {
  return qact::core::testing::narrow<__nv_bfloat16>(v);
}
