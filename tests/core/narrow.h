// The 16-bit types and how they turn into float and back, one value at a time: what the kernels'
// lanes are compared with (qact/core/cpu/stored.h).
#pragma once

#include <bit>
#include <cstdint>

namespace qact::core::testing {

struct bfloat16_bits {
  uint16_t bits;
};
struct half_bits {
  uint16_t bits;
};

inline float widen(bfloat16_bits v) {
  return std::bit_cast<float>(static_cast<uint32_t>(v.bits) << 16);
}

inline float widen(half_bits v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(v.bits & 0x7fff) << 13;
  // Scaling by 2^112 moves the exponent's bias and makes subnormals normal.
  const float scaled = std::bit_cast<float>(rest) * 0x1.0p112f;
  const uint32_t special = rest >= 0x0f800000 ? 0x7f800000 | rest : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | special);
}

// Back: to nearest, ties to even.
template <class To>
To narrow(float v);

template <>
inline bfloat16_bits narrow<bfloat16_bits>(float v) {
  if (v != v) return {0x7fc0};
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
template <>
inline half_bits narrow<half_bits>(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x47800000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {  // subnormal: let the addition round
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000))};
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
}

}  // namespace qact::core::testing
