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
template <int kChunks, class T, class I>
inline Lanes<T, I::kSize> lookup(const T* table, const I& index) {
#if defined(__AVX512F__)
  using L = Lanes<T, I::kSize>;
  if constexpr (sizeof(L) == 64 && sizeof(T) == 4) {
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
    return {{(typename L::Part)out}};
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

// The places of the bits that are set, from `first` on. Returns how many, and writes up to 16.
inline int32_t write_places(uint32_t bits, int32_t first, int32_t* place) {
#if defined(__AVX512F__)
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32(first));
  _mm512_storeu_si512(place, _mm512_maskz_compress_epi32((__mmask16)bits, at));
  return __builtin_popcount(bits);
#else
  int32_t found = 0;
  for (int l = 0; l < 16 - QACT_MUTANT("write_places_tail");
       ++l) {  // without a branch: there is no pattern
    place[found] = first + l;
    found += bits >> l & 1;
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

// As many bytes.
inline constexpr int kBytes = 64;
using ByteVec = Lanes<uint8_t, kBytes>;

inline ByteVec prefix_sum(const ByteVec& v) {
#if defined(__AVX512F__)
  const __m512i zero = _mm512_setzero_si512();
  __m512i sum = (__m512i)v.part[0];  // within 16 bytes,
  sum = _mm512_add_epi8(sum, _mm512_bslli_epi128(sum, 1));
  sum = _mm512_add_epi8(sum, _mm512_bslli_epi128(sum, 2));
  sum = _mm512_add_epi8(sum, _mm512_bslli_epi128(sum, 4));
  sum = _mm512_add_epi8(sum, _mm512_bslli_epi128(sum, 8));
  // and of those before.
  __m512i below = _mm512_shuffle_epi8(sum, _mm512_set1_epi8(15));
  below = _mm512_alignr_epi64(below, zero, 6);
  below = _mm512_add_epi8(below, _mm512_alignr_epi64(below, zero, 6));
  below = _mm512_add_epi8(below, _mm512_alignr_epi64(below, zero, 4));
  return {{(ByteVec::Part)_mm512_add_epi8(sum, below)}};
#else
  uint8_t lanes[kBytes];
  store(lanes, v);
  for (int l = 1; l < kBytes - QACT_MUTANT("prefix_sum_bytes"); ++l) lanes[l] += lanes[l - 1];
  return load<ByteVec>(lanes);
#endif
}

inline ByteVec all_last(const ByteVec& v) {
  return all<ByteVec>(v.part[kParts - 1][kBytes / kParts - 1]);
}

// The lower halves of words.
inline ByteVec load_bytes(const uint16_t* p) {
#if defined(__AVX512BW__)
  const __m256i low = _mm512_cvtepi16_epi8(_mm512_loadu_si512(p));
  const __m256i high = _mm512_cvtepi16_epi8(_mm512_loadu_si512(p + 32));
  return {{(ByteVec::Part)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)}};
#else
  uint8_t lanes[kBytes];
  for (int l = 0; l < kBytes; ++l) lanes[l] = (uint8_t)p[l];
  return load<ByteVec>(lanes);
#endif
}

// A bit for each byte that differs from the one before it, the first from the last of `before`.
inline uint64_t changed_bytes(const ByteVec& v, const ByteVec& before) {
#if defined(__AVX512BW__)
  const __m512i now = (__m512i)v.part[0];
  const __m512i lower = _mm512_alignr_epi64(now, (__m512i)before.part[0], 6);
  return _mm512_cmpneq_epi8_mask(now, _mm512_alignr_epi8(now, lower, 15));
#else
  uint8_t lanes[kBytes];
  store(lanes, v);
  uint8_t last = before.part[kParts - 1][kBytes / kParts - 1];
  uint64_t bits = 0;
  for (int l = 0; l < kBytes; ++l) {
    bits |= (uint64_t)(lanes[l] != last) << l;
    last = lanes[l];
  }
  return bits;
#endif
}

inline float last_of(const Vec<float>& v) { return v.part[kParts - 1][16 / kParts - 1]; }

}  // namespace
}  // namespace qact::core::cpu
