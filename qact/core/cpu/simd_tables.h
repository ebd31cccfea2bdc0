// Lanes and tables: lookups, masks, and sums across lanes. Internal linkage, as in
// simd.h.
#pragma once

#include <utility>

#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

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

// table[index] and what follows it there, which one access of twice the width reads.
inline std::pair<IntVec<float>, IntVec<float>> gather_two(const int32_t* table,
                                                          const IntVec<float>& index) {
#if defined(__AVX512F__)
  using Part = IntVec<float>::Part;
  const __m512i at = (__m512i)index.part[0];
  const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), table, 4);
  const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), table, 4);
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return {{{(Part)_mm512_permutex2var_epi32(low, even, high)}},
          {{(Part)_mm512_permutex2var_epi32(low, odd, high)}}};
#else
  return {gather(table, index), gather(table + 1, index)};
#endif
}

// The same as gather() from a table of at most 32 * kChunks entries, all readable. Where a table
// fits registers, shuffles beat a gather.
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

// count + 1 where a < b.
template <class Real>
inline IntVec<Real> count_less(const IntVec<Real>& count, const Vec<Real>& a, const Vec<Real>& b) {
  using I = IntVec<Real>;
  return count - each<I>([&](int p) {
           return __builtin_convertvector(a.part[p] < b.part[p], typename I::Part);
         });
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

// The places, from `first` on, of those of `count` values, 16 at most, that differ from the one
// before them. Returns how many, and writes up to 16; the last of 16 becomes the one before.
inline int32_t change_places(const IntVec<float>& values, int32_t& before, int32_t first, int count,
                             int32_t* place) {
#if defined(__AVX512F__)
  const __m512i now = (__m512i)values.part[0];
  const __m512i then = _mm512_alignr_epi32(now, _mm512_set1_epi32(before), 15);
  const __mmask16 some = (__mmask16)((1u << count) - 1);
  const __mmask16 differ = _mm512_mask_cmpneq_epi32_mask(some, now, then);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32(first));
  _mm512_storeu_si512(place, _mm512_maskz_compress_epi32(differ, at));
  before = values.part[0][15];
  return __builtin_popcount(differ);
#else
  int32_t lanes[16], found = 0;
  store(lanes, values);
  for (int l = 0; l < count; ++l) {  // without a branch: there is no pattern
    place[found] = first + l;
    found += lanes[l] != before;
    before = lanes[l];
  }
  return found;
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
  for (int l = 1; l < 16 - QACT_MUTANT("prefix_sum_tail"); ++l) lanes[l] += lanes[l - 1];
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

}  // namespace
}  // namespace qact::core::cpu
