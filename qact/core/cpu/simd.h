// 64 bytes of lanes, held in as many of the target's own vectors as that takes: one with
// AVX-512, two with AVX2, four below. Arithmetic goes through the compiler's vector
// extension; only floors, and what simd_tables.h does between lanes and memory, need intrinsics.
//
// Included by the kernels' bodies alone. Everything here has internal linkage, so that no
// inline function compiled for a newer CPU can be picked by the linker for an older one.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kParts = 1;
#elif defined(__AVX2__)
constexpr int kParts = 2;
#else
constexpr int kParts = 4;
#endif

template <class T, int kCount>
struct Lanes {
  static constexpr int kSize = kCount;
  using Lane = T;
  typedef T Part __attribute__((vector_size(kCount / kParts * sizeof(T))));
  Part part[kParts];
};

// The lanes of float or double values, and as many 32-bit integers.
template <class Real>
using Vec = Lanes<Real, 64 / sizeof(Real)>;
template <class Real>
using IntVec = Lanes<int32_t, 64 / sizeof(Real)>;

template <class L, class Op>
inline L each(const Op& op) {
  L out;
  for (int p = 0; p < kParts; ++p) out.part[p] = op(p);
  return out;
}

template <class T, int kN>
inline Lanes<T, kN> all(T value) {
  using L = Lanes<T, kN>;
  return each<L>([&](int) { return value - typename L::Part{}; });
}
template <class L>
inline L all(typename L::Lane value) {
  return all<typename L::Lane, L::kSize>(value);
}

template <class T, int kN>
inline Lanes<T, kN> operator+(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] + b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> operator-(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] - b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> operator*(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] * b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> operator/(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] / b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> operator+(const Lanes<T, kN>& a, T b) {
  return a + all<T, kN>(b);
}
template <class T, int kN>
inline Lanes<T, kN> operator-(const Lanes<T, kN>& a, T b) {
  return a - all<T, kN>(b);
}
template <class T, int kN>
inline Lanes<T, kN> operator*(const Lanes<T, kN>& a, T b) {
  return a * all<T, kN>(b);
}
template <class T, int kN>
inline Lanes<T, kN>& operator+=(Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return a = a + b;
}
template <class T, int kN>
inline Lanes<T, kN> operator|(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] | b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> operator&(const Lanes<T, kN>& a, T b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] & b; });
}

template <int kN>
inline Lanes<int32_t, kN> operator>>(const Lanes<int32_t, kN>& a, int b) {
  return each<Lanes<int32_t, kN>>([&](int p) { return a.part[p] >> b; });
}

// The second where the two do not compare: a NaN in `a` is dropped.
template <class T, int kN>
inline Lanes<T, kN> minimum(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] < b.part[p] ? a.part[p] : b.part[p]; });
}
template <class T, int kN>
inline Lanes<T, kN> maximum(const Lanes<T, kN>& a, const Lanes<T, kN>& b) {
  return each<Lanes<T, kN>>([&](int p) { return a.part[p] > b.part[p] ? a.part[p] : b.part[p]; });
}

template <int kN>
inline Lanes<float, kN> absolute(const Lanes<float, kN>& v) {
  return maximum(v, Lanes<float, kN>{} - v);
}
// v >= 0, with the other's sign.
template <int kN>
inline Lanes<float, kN> with_sign(const Lanes<float, kN>& v, const Lanes<float, kN>& sign) {
  return each<Lanes<float, kN>>([&](int p) { return sign.part[p] < 0 ? -v.part[p] : v.part[p]; });
}
inline Lanes<double, 8> square_root(const Lanes<double, 8>& v) {
  using L = Lanes<double, 8>;
#if defined(__AVX512F__)
  return each<L>([&](int p) { return (L::Part)_mm512_sqrt_pd((__m512d)v.part[p]); });
#elif defined(__AVX2__)
  return each<L>([&](int p) { return (L::Part)_mm256_sqrt_pd((__m256d)v.part[p]); });
#else
  return each<L>([&](int p) {
    L::Part out;
    for (int l = 0; l < 8 / kParts; ++l) out[l] = __builtin_sqrt(v.part[p][l]);
    return out;
  });
#endif
}
inline Lanes<float, 16> square_root(const Lanes<float, 16>& v) {
  using L = Lanes<float, 16>;
#if defined(__AVX512F__)
  return each<L>([&](int p) { return (L::Part)_mm512_sqrt_ps((__m512)v.part[p]); });
#elif defined(__AVX2__)
  return each<L>([&](int p) { return (L::Part)_mm256_sqrt_ps((__m256)v.part[p]); });
#else
  return each<L>([&](int p) {
    L::Part out;
    for (int l = 0; l < 16 / kParts; ++l) out[l] = __builtin_sqrtf(v.part[p][l]);
    return out;
  });
#endif
}

template <class Real>
inline Vec<Real> to_real(const IntVec<Real>& v) {
  return each<Vec<Real>>(
      [&](int p) { return __builtin_convertvector(v.part[p], typename Vec<Real>::Part); });
}

template <class Real>
inline IntVec<Real> truncate(const Vec<Real>& v) {
  return each<IntVec<Real>>(
      [&](int p) { return __builtin_convertvector(v.part[p], typename IntVec<Real>::Part); });
}

// As many lanes of another type.
template <class To, class From>
inline To convert(const From& v) {
  return each<To>([&](int p) { return __builtin_convertvector(v.part[p], typename To::Part); });
}

// The lower half of each lane.
template <int kN>
inline Lanes<uint16_t, kN> to_short(const Lanes<int32_t, kN>& v) {
  using L = Lanes<uint16_t, kN>;
  return each<L>([&](int p) { return __builtin_convertvector(v.part[p], typename L::Part); });
}

// All ones where a <= b.
template <class Real>
inline IntVec<Real> less_equal(const Vec<Real>& a, const Vec<Real>& b) {
  return each<IntVec<Real>>([&](int p) {
    return __builtin_convertvector(a.part[p] <= b.part[p], typename IntVec<Real>::Part);
  });
}

template <class Real>
inline IntVec<Real> floor(const Vec<Real>& v) {
#if defined(__AVX512F__)
  constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  if constexpr (sizeof(Real) == 4) {
    return {{(typename IntVec<Real>::Part)_mm512_cvt_roundps_epi32((__m512)v.part[0], kDown)}};
  } else {
    return {{(typename IntVec<Real>::Part)_mm512_cvt_roundpd_epi32((__m512d)v.part[0], kDown)}};
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(Real) == 4) {
    return each<IntVec<Real>>([&](int p) {
      return (typename IntVec<Real>::Part)_mm256_cvttps_epi32(_mm256_floor_ps((__m256)v.part[p]));
    });
  }
#endif
  const IntVec<Real> whole = truncate<Real>(v);
  const Vec<Real> back = to_real<Real>(whole);
  return each<IntVec<Real>>([&](int p) {
    if (QACT_MUTANT("floor_truncates")) return whole.part[p];
    return whole.part[p] +
           __builtin_convertvector(back.part[p] > v.part[p], typename IntVec<Real>::Part);
  });
}

// Part by part: a copy of the whole would go through narrower moves and stall.
template <class L, class T>
inline L load(const T* p) {
  return each<L>([&](int k) {
    typename L::Part part;
    std::memcpy(&part, p + k * (L::kSize / kParts), sizeof(part));
    return part;
  });
}

template <class T, class L>
inline void store(T* p, const L& v) {
  for (int k = 0; k < kParts; ++k) {
    std::memcpy(p + k * (L::kSize / kParts), &v.part[k], sizeof(v.part[k]));
  }
}

// Lanes of 32 bits from memory of 8 or 16: the compiler would take them one by one.
template <int kN, class T>
inline Lanes<int32_t, kN> load_short(const T* p) {
  using L = Lanes<int32_t, kN>;
#if defined(__AVX2__)
  constexpr int kPart = kN / kParts;
  return each<L>([&](int k) {
    const T* from = p + k * kPart;
    if constexpr (kPart == 4) {
      return (typename L::Part)(sizeof(T) == 1
                                    ? _mm_cvtepu8_epi32(_mm_loadu_si32(from))
                                    : _mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i*)from)));
    } else if constexpr (kPart == 16) {
#if defined(__AVX512F__)
      if constexpr (sizeof(T) == 1) {
        return (typename L::Part)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)from));
      } else {
        return (typename L::Part)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i*)from));
      }
#endif
    } else if constexpr (sizeof(T) == 1) {
      return (typename L::Part)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
    } else {
      return (typename L::Part)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i*)from));
    }
  });
#else
  return convert<L>(load<Lanes<T, kN>>(p));
#endif
}

// 0 in all lanes but the first n.
template <int kN>
inline Lanes<int32_t, kN> first_lanes(const Lanes<int32_t, kN>& v, int n) {
  int32_t lanes[kN];
  for (int l = 0; l < kN; ++l) lanes[l] = l;
  const auto lane = load<Lanes<int32_t, kN>>(lanes);
  return each<Lanes<int32_t, kN>>([&](int p) { return v.part[p] & (lane.part[p] < n); });
}

// Lanes of Real from memory of a shorter type.
template <class Real, class T>
inline Vec<Real> load_as(const T* p) {
  constexpr int kN = 64 / sizeof(Real);
  if constexpr (sizeof(T) < 4) {
    return convert<Vec<Real>>(load_short<kN>(p));
  } else {
    return convert<Vec<Real>>(load<Lanes<T, kN>>(p));
  }
}

// The first `n` lanes from memory, the others `fill`.
template <class L, class T>
inline L load_some(const T* p, int n, T fill) {
  T lanes[L::kSize];
  for (T& lane : lanes) lane = fill;
  for (int l = 0; l < n; ++l) lanes[l] = p[l];
  return load<L>(lanes);
}

template <class T, class L>
inline void store_some(T* p, const L& v, int n) {
  T lanes[L::kSize];
  store(lanes, v);
  for (int l = 0; l < n; ++l) p[l] = lanes[l];
}

}  // namespace
}  // namespace qact::core::cpu
