// Numbers on the device: the three types of tensors, the order of floats as integers, and
// division by a number known at launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "qact/core/mutant.h"

namespace qact::core::cuda {

__device__ inline float to_float(float v) { return v; }
__device__ inline float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ inline float to_float(__half v) { return __half2float(v); }

template <class T>
__device__ inline T from_float(float v);
template <>
__device__ inline float from_float<float>(float v) {
  return v;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}
template <>
__device__ inline __half from_float<__half>(float v) {
  return __float2half_rn(v);
}

// kSize neighbours that one instruction loads or stores.
template <class T, int kSize>
struct alignas(sizeof(T) * kSize) Pack {
  T v[kSize];
};

// Read through the read-only path: what a kernel loads, it never writes, so that loads may
// run ahead of stores.
template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using Type = unsigned char;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<4> {
  using Type = unsigned int;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

template <int kSize, class T>
__device__ inline Pack<T, kSize> load(const T* at) {
  using Type = typename Word<sizeof(T) * kSize>::Type;
  union {
    Type word;
    Pack<T, kSize> pack;
  } out = {__ldg(reinterpret_cast<const Type*>(at))};
  return out.pack;
}

// The order of the keys is the order of the values, or its reverse. -0 is 0; no NaN.
__device__ inline uint32_t order_key(float x, bool descending) {
  const uint32_t bits = __float_as_uint(x + 0.0f);
  const uint32_t key = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return descending && !QACT_MUTANT("cuda_key_order") ? ~key : key;
}
__device__ inline float key_value(uint32_t key, bool descending) {
  if (descending) key = ~key;
  return __uint_as_float((key & 0x80000000u) ? key & 0x7fffffffu : ~key);
}

// The first index of [begin, end) where `holds`, which stays true once it is; else end.
template <class Index, class Holds>
__device__ inline Index first_where(Index begin, Index end, const Holds& holds) {
  while (begin < end) {
    const Index middle = begin + (end - begin) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// n / divisor for n < 2^31 by a multiplication.
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1);
  }
  __device__ uint32_t quotient(uint32_t n) const { return (__umulhi(n, magic) + n) >> shift; }
  __device__ uint32_t remainder(uint32_t n) const { return n - quotient(n) * divisor; }
};

}  // namespace qact::core::cuda
