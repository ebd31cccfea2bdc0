// Lanes from and to tensors of any type: widened, narrowed to nearest (ties to even), or as they
// are. Internal linkage, as in simd.h.
#pragma once

#include <type_traits>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// The 16-bit types.
struct bfloat16_bits {
  uint16_t bits;
};
struct half_bits {
  uint16_t bits;
};

using Words = Lanes<uint32_t, 16>;

inline Words bits_of(const Vec<float>& v) {
  Words bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}
inline Vec<float> floats_of(const Words& bits) {
  Vec<float> v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}
inline Words::Part all_words(uint32_t word) { return word - Words::Part{}; }

template <class Real>
inline Vec<Real> load_stored(const Real* p) {
  return load<Vec<Real>>(p);
}
template <class Real>
inline Vec<Real> load_stored(const bfloat16_bits* p) {
  const auto halves = load_short<16>((const int16_t*)p);
  return floats_of(each<Words>([&](int k) { return (Words::Part)halves.part[k] << 16; }));
}
template <class Real>
inline Vec<Real> load_stored(const half_bits* p) {
  const auto halves = load_short<16>((const int16_t*)p);
  const Words rest =
      each<Words>([&](int k) { return ((Words::Part)halves.part[k] & all_words(0x7fff)) << 13; });
  // Scaling by 2^112 moves the exponent's bias and makes subnormals normal.
  const Words scaled = bits_of(floats_of(rest) * 0x1.0p112f);
  return floats_of(each<Words>([&](int k) {
    const Words::Part sign = ((Words::Part)halves.part[k] & all_words(0x8000)) << 16;
    const auto special = rest.part[k] >= all_words(0x0f800000);
    return sign | (special ? all_words(0x7f800000) | rest.part[k] : scaled.part[k]);
  }));
}

inline Words narrowed(const Vec<float>& v, const bfloat16_bits*) {
  const Words bits = bits_of(v);
  const uint32_t half = QACT_MUTANT("bfloat16_lanes_truncated") ? 0 : 0x7fff;
  return each<Words>([&](int k) {
    const Words::Part rounded = (bits.part[k] + half + ((bits.part[k] >> 16) & 1)) >> 16;
    return v.part[k] == v.part[k] ? rounded : all_words(0x7fc0);
  });
}
inline Words narrowed(const Vec<float>& v, const half_bits*) {
  const Words bits = bits_of(v);
  const Words magnitude = each<Words>([&](int k) { return bits.part[k] & all_words(0x7fffffff); });
  const Words subnormal = bits_of(floats_of(magnitude) + 0.5f);  // the addition rounds
  return each<Words>([&](int k) {
    const Words::Part m = magnitude.part[k];
    const Words::Part rounded = (m + 0xfff + ((m >> 13) & 1) - 0x38000000) >> 13;
    const Words::Part finite = m < all_words(0x38800000) ? subnormal.part[k] - 0x3f000000 : rounded;
    const Words::Part infinite = m > all_words(0x7f800000) ? all_words(0x7e00) : all_words(0x7c00);
    return ((bits.part[k] >> 16) & 0x8000) | (m >= all_words(0x47800000) ? infinite : finite);
  });
}

template <class Stored, class V>
inline void store_stored(Stored* p, const V& v) {
  if constexpr (std::is_same_v<Stored, typename V::Lane>) {
    store(p, v);
  } else {
    store((uint16_t*)p, convert<Lanes<uint16_t, 16>>(narrowed(v, p)));
  }
}

// The first n lanes, `step` apart in memory; the others are 0.
template <class Real, class Stored>
inline Vec<Real> load_stored_some(const Stored* p, int n, int64_t step = 1) {
  Stored lanes[kLanes<Real>] = {};
  for (int l = 0; l < n; ++l) lanes[l] = p[l * step];
  return load_stored<Real>(lanes);
}
template <class Stored, class V>
inline void store_stored_some(Stored* p, const V& v, int n, int64_t step = 1) {
  Stored lanes[V::kSize];
  store_stored(lanes, v);
  for (int l = 0; l < n; ++l) p[l * step] = lanes[l];
}

// run(pointer) with the type that a tensor's values have.
template <class Real, class Void, class Run>
inline void with_stored(Void* data, DType dtype, const Run& run) {
  const auto as = [&](auto type) {
    using Stored = decltype(type);
    run((std::conditional_t<std::is_const_v<Void>, const Stored*, Stored*>)data);
  };
  if constexpr (std::is_same_v<Real, float>) {
    if (dtype == DType::bf16) return as(bfloat16_bits{});
    if (dtype == DType::f16) return as(half_bits{});
  }
  as(Real{});
}

}  // namespace
}  // namespace qact::core::cpu
