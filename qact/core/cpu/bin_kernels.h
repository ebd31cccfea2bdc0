// Bins of values, and codes by bin; see TensorKernels in kernels.h. Included once per
// SIMD level.
#pragma once

#include "qact/core/cpu/code_shuffles.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

template <class Real>
[[gnu::always_inline]] inline IntVec<Real> bin_of(const Vec<Real>& x, const BinMap<Real>& map) {
  using V = Vec<Real>;
  V t = (x - map.origin) * map.scale;
  t = minimum(maximum(t, all<V>(map.first)), all<V>(map.last));
  return floor<Real>(t) + map.offset;
}

template <class Real>
void find_bins(const Real* x, int64_t n, const BinMap<Real>& shared_map, uint16_t* bin) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const BinMap<Real> map = shared_map;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store(bin + i, to_short(bin_of<Real>(load<V>(x + i), map)));
  if (i < n) {
    const V rest = load_some<V>(x + i, (int)(n - i), map.origin);
    store_some(bin + i, to_short(bin_of<Real>(rest, map)), (int)(n - i));
  }
}

// visit(place, bin) for as many, of which four come with one load.
template <class Visit>
inline void for_each_bin(const uint16_t* bin, const Visit& visit) {
  for (int l = 0; l < kPerLine; l += 4) {
    uint64_t four;
    std::memcpy(&four, bin + l, sizeof(four));
    visit(l, four & 0xffff);
    visit(l + 1, four >> 16 & 0xffff);
    visit(l + 2, four >> 32 & 0xffff);
    visit(l + 3, four >> 48);
  }
}

// Finding takes arithmetic, and counting takes stores: side by side they cost no more than the
// latter. But bins are not ready to be read right after they were written.
template <class Real>
void count_bins(const Real* x, int64_t n, const BinMap<Real>& shared_map, uint16_t* bin,
                uint32_t* even, uint32_t* odd, Prefetch& shared_next) {
  constexpr int64_t kFoundAhead = 64;
  const BinMap<Real> map = shared_map;
  Prefetch next = shared_next;
  int64_t found = n < kFoundAhead ? n : kFoundAhead, i = 0;
  find_bins<Real>(x, found, map, bin);
  const auto count_line = [&] {
    prefetch_line<false>(next);
    for_each_bin(bin + i, [&](int l, uint64_t b) { ++(l % 2 ? odd : even)[b]; });
    i += kPerLine;
  };
  for (; found + kPerLine <= n; found += kPerLine) {
    for (int l = 0; l < kPerLine; l += kLanes<Real>) {
      const auto bins = bin_of<Real>(load<Vec<Real>>(x + found + l), map);
      store(bin + found + l, to_short(bins));
    }
    count_line();
  }
  find_bins<Real>(x + found, n - found, map, bin + found);
  while (i + kPerLine <= n) count_line();
  for (; i < n - QACT_MUTANT("count_tail"); ++i) ++even[bin[i]];
  shared_next = next;
}

#if defined(__AVX512BW__)
// Bins marked by an entry >= 0, a bit each in registers, where shuffles look them up: 1,024 bins
// in each of kPairs pairs.
template <int kPairs>
class MarkedBins {
 public:
  static constexpr int kMost = 1024 * kPairs;

  MarkedBins(const int32_t* marks, int32_t bins) {
    uint16_t words[kMost / 16] = {};
    for (int32_t b = 0; b < bins; b += 16) {
      words[b / 16] = ~_mm512_movepi32_mask(_mm512_loadu_si512(marks + b));
    }
    for (int k = 0; k < 2 * kPairs; ++k) words_[k] = _mm512_loadu_si512(words + 32 * k);
  }

  // The places, from `first` on, of those of 32 bins that are marked and wanted. Returns how many,
  // and writes 16 more at most.
  int find(const uint16_t* bins, uint32_t wanted, int32_t first, int32_t* places) const {
    const __m512i bin = _mm512_loadu_si512(bins), word = _mm512_srli_epi16(bin, 4);
    __m512i found = _mm512_permutex2var_epi16(words_[0], word, words_[1]);
    for (int p = 1; p < kPairs; ++p) {
      const __mmask32 from_here =
          _mm512_cmpge_epu16_mask(word, _mm512_set1_epi16((int16_t)(64 * p)));
      found = _mm512_mask_mov_epi16(
          found, from_here, _mm512_permutex2var_epi16(words_[2 * p], word, words_[2 * p + 1]));
    }
    const __m512i bit =
        _mm512_sllv_epi16(_mm512_set1_epi16(1), _mm512_and_si512(bin, _mm512_set1_epi16(15)));
    const uint32_t marked = wanted & _mm512_test_epi16_mask(found, bit);
    if (marked == 0) return 0;
    const int half = write((__mmask16)marked, first, places);
    return half + write((__mmask16)(marked >> 16), first + 16, places + half);
  }

 private:
  static int write(__mmask16 marked, int32_t first, int32_t* places) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i place = _mm512_add_epi32(lane, _mm512_set1_epi32(first));
    _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(marked, place));
    return __builtin_popcount(marked);
  }

  __m512i words_[2 * kPairs];
};

// A bit for each of 32 values that differ from `skip`.
template <class Real>
inline uint32_t differing(const Real* x, Real skip) {
  uint32_t bits = 0;
  for (int l = 0; l < 32; l += kLanes<Real>) {
    if constexpr (sizeof(Real) == 4) {
      bits |=
          (uint32_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + l), _mm512_set1_ps(skip), _CMP_NEQ_UQ)
          << l;
    } else {
      bits |=
          (uint32_t)_mm512_cmp_pd_mask(_mm512_loadu_pd(x + l), _mm512_set1_pd(skip), _CMP_NEQ_UQ)
          << l;
    }
  }
  return bits;
}
#endif

// Without a branch: where the marked ones are has no pattern.
template <class Real>
int64_t marked_places(const Real* x, const uint16_t* bin, int64_t n, const int32_t* marks,
                      int32_t bins, Real skip, int32_t* place) {
  int64_t found = 0, i = 0;
#if defined(__AVX512BW__)
  const auto find = [&](const auto& marked) {
    for (; i + 32 <= n; i += 32) {
      found += marked.find(bin + i, differing(x + i, skip), (int32_t)i, place + found);
    }
  };
  if (bins <= MarkedBins<2>::kMost) {
    find(MarkedBins<2>(marks, bins));
  } else if (bins <= MarkedBins<4>::kMost) {
    find(MarkedBins<4>(marks, bins));
  }
#else
  (void)bins;
#endif
  for (; i < n - QACT_MUTANT("marked_places_tail"); ++i) {
    place[found] = (int32_t)i;
    found += (marks[bin[i]] >= 0) & (x[i] != skip);
  }
  return found;
}

// One by one, which a gather does no faster.
void code_bytes(const uint16_t* bin, int64_t n, const uint8_t* codes, int32_t bins, uint8_t* code,
                Prefetch& shared_written) {
  Prefetch written = shared_written;
  int64_t i = 0;
#if defined(__AVX512BW__)
  if (CodeShuffles::pay(n, bins)) i = CodeShuffles{codes}.find(bin, n, code, written);
#else
  (void)bins;
#endif
  for (; i + kPerLine <= n; i += kPerLine) {
    prefetch_line<true>(written);
    uint8_t* to = code + i;
    for_each_bin(bin + i, [&](int l, uint64_t b) { to[l] = codes[b]; });
  }
  for (; i < n; ++i) code[i] = codes[bin[i]];
  shared_written = written;
}

}  // namespace
}  // namespace qact::core::cpu
