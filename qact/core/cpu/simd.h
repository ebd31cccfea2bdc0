// 64 bytes of lanes, held in as many of the target's own vectors as that takes: one with
// AVX-512, two with AVX2, four below. Arithmetic goes through the compiler's vector
// extension; only gathers and byte moves need intrinsics.
//
// Included by the kernels' bodies alone. Everything here has internal linkage, so that no
// inline function compiled for a newer CPU can be picked by the linker for an older one.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

template <class T, class I>
inline Lanes<T, I::kSize> gather(const T* table, const I& index) {
  using L = Lanes<T, I::kSize>;
#if defined(__AVX512F__)
  if constexpr (sizeof(L) == 64 && sizeof(T) == 4) {
    const __m512i at = (__m512i)index.part[0];
    return {{(typename L::Part)_mm512_i32gather_epi32(at, table, 4)}};
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(L) == 64 && sizeof(T) == 4) {
    return each<L>([&](int p) {
      return (typename L::Part)_mm256_i32gather_epi32((const int*)table, (__m256i)index.part[p], 4);
    });
  }
#endif
  int32_t at[I::kSize];
  T lanes[I::kSize];
  store(at, index);
  for (int l = 0; l < I::kSize; ++l) lanes[l] = table[at[l]];
  return load<L>(lanes);
}

// The same from a table of at most 32 * kChunks entries, all readable. Where a table fits
// registers, shuffles beat a gather.
template <int kChunks, class I>
inline I lookup(const int32_t* table, const I& index) {
#if defined(__AVX512F__)
  if constexpr (sizeof(I) == 64) {
    const __m512i at = (__m512i)index.part[0];
    const auto chunk = [&](int c) {
      return _mm512_permutex2var_epi32(_mm512_loadu_si512(table + 32 * c), at,
                                       _mm512_loadu_si512(table + 32 * c + 16));
    };
    __m512i out = chunk(0);
    for (int c = 1; c < kChunks; ++c) {
      const __mmask16 from_here = _mm512_cmpge_epi32_mask(at, _mm512_set1_epi32(32 * c));
      out = _mm512_mask_mov_epi32(out, from_here, chunk(c));
    }
    return {{(typename I::Part)out}};
  }
#endif
  return gather(table, index);
}

template <int kN>
inline bool any_negative(const Lanes<int32_t, kN>& v) {
#if defined(__AVX512F__)
  if constexpr (kN == 16) {
    return _mm512_cmplt_epi32_mask((__m512i)v.part[0], _mm512_setzero_si512()) != 0;
  }
#elif defined(__AVX2__)
  if constexpr (kN == 16) {
    return _mm256_movemask_ps((__m256)(v.part[0] | v.part[1])) != 0;
  }
#endif
  int32_t lanes[kN], any = 0;
  store(lanes, v);
  for (const int32_t lane : lanes) any |= lane;
  return any < 0;
}

// A bit per lane that is negative.
inline uint32_t negative_lanes(const IntVec<float>& v) {
#if defined(__AVX512F__)
  return _mm512_cmplt_epi32_mask((__m512i)v.part[0], _mm512_setzero_si512());
#elif defined(__AVX2__)
  const auto signs = [&](int p) { return (uint32_t)_mm256_movemask_ps((__m256)v.part[p]); };
  return signs(0) | signs(1) << 8;
#else
  int32_t lanes[16];
  store(lanes, v);
  uint32_t bits = 0;
  for (int l = 0; l < 16; ++l) bits |= (uint32_t)(lanes[l] < 0) << l;
  return bits;
#endif
}

// Inclusive, from lane 0 up.
template <class T>
inline Lanes<T, 16> prefix_sum(const Lanes<T, 16>& v) {
  static_assert(sizeof(T) == 4);
  using L = Lanes<T, 16>;
#if defined(__AVX512F__)
  __m512i sum = (__m512i)v.part[0];
  const __m512i zero = _mm512_setzero_si512();
  sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 15));
  sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 14));
  sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 12));
  sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 8));
  return {{(typename L::Part)sum}};
#else
  T lanes[16];
  store(lanes, v);
  for (int l = 1; l < 16; ++l) lanes[l] += lanes[l - 1];
  return load<L>(lanes);
#endif
}

// The last lane, in every lane.
template <class T>
inline Lanes<T, 16> all_last(const Lanes<T, 16>& v) {
  static_assert(sizeof(T) == 4);
  using L = Lanes<T, 16>;
#if defined(__AVX512F__)
  const __m512i last = _mm512_set1_epi32(15);
  return {{(typename L::Part)_mm512_permutexvar_epi32(last, (__m512i)v.part[0])}};
#else
  return all<L>(v.part[kParts - 1][16 / kParts - 1]);
#endif
}

inline float last_of(const Vec<float>& v) { return v.part[kParts - 1][16 / kParts - 1]; }

template <int kN>
inline int64_t sum_of(const Lanes<int32_t, kN>& v) {
  int32_t lanes[kN];
  store(lanes, v);
  int64_t sum = 0;
  for (const int32_t lane : lanes) sum += lane;
  return sum;
}

template <int kN>
inline void store_bytes(uint8_t* p, const Lanes<int32_t, kN>& v) {
#if defined(__AVX512F__)
  if constexpr (kN == 16) {
    _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v.part[0]));
    return;
  }
#elif defined(__AVX2__)
  if constexpr (kN == 16) {
    const __m256i words = _mm256_packs_epi32((__m256i)v.part[0], (__m256i)v.part[1]);
    const __m256i order = _mm256_permute4x64_epi64(words, 0xd8);
    _mm_storeu_si128((__m128i*)p, _mm_packus_epi16(_mm256_castsi256_si128(order),
                                                   _mm256_extracti128_si256(order, 1)));
    return;
  }
#endif
  int32_t lanes[kN];
  store(lanes, v);
  for (int l = 0; l < kN; ++l) p[l] = (uint8_t)lanes[l];
}

template <class I>
inline I load_bytes(const uint8_t* p) {
#if defined(__AVX512F__)
  if constexpr (I::kSize == 16) {
    return {{(typename I::Part)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p))}};
  }
#elif defined(__AVX2__)
  if constexpr (I::kSize == 16) {
    return each<I>([&](int half) {
      return (typename I::Part)_mm256_cvtepu8_epi32(
          _mm_loadl_epi64((const __m128i*)(p + 8 * half)));
    });
  }
#endif
  int32_t lanes[I::kSize];
  for (int l = 0; l < I::kSize; ++l) lanes[l] = p[l];
  return load<I>(lanes);
}

}  // namespace
}  // namespace qact::core::cpu
