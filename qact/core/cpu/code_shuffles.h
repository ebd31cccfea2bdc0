// Codes by bin, looked up among bytes by shuffles, where the CPU has AVX-512's VBMI. Included by
// bin_kernels.h alone.
#pragma once

#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

#if defined(__AVX512BW__)
namespace qact::core::cpu {
namespace {

struct CodeShuffles {
  static constexpr int kAtOnce = 64;

  const uint8_t* codes;  // kMostShuffled of them can be read

  // Many values must share the table.
  static bool pay(int64_t n, int32_t bins) {
    return n >= kMostShuffled / 2 && bins <= kMostShuffled && __builtin_cpu_supports("avx512vbmi");
  }

  // For as many whole vectors as there are among n values. Returns how many values that makes.
  [[gnu::target("avx512vbmi")]] int64_t find(const uint16_t* bin, int64_t n, uint8_t* code,
                                             Prefetch& shared_written) const {
    alignas(64) uint8_t places[kAtOnce];
    for (int l = 0; l < kAtOnce; ++l) places[l] = (uint8_t)(2 * l);
    const __m512i even = _mm512_load_si512(places);
    Prefetch written = shared_written;
    int64_t i = 0;
    for (; i + kAtOnce <= n; i += kAtOnce) {
      for (int line = 0; line < kAtOnce / 16; ++line) prefetch_line<true>(written);
      const __m512i first = _mm512_loadu_si512(bin + i), second = _mm512_loadu_si512(bin + i + 32);
      const __m512i low = _mm512_permutex2var_epi8(first, even, second);
      const __m512i high =
          _mm512_permutex2var_epi8(_mm512_srli_epi16(first, 7), even, _mm512_srli_epi16(second, 7));
      _mm512_storeu_si512(code + i, look_up(low, high));
    }
    shared_written = written;
    return i;
  }

 private:
  static constexpr int kChunk = 128;  // bytes that one shuffle reads
  static constexpr int kChunks = kMostShuffled / kChunk;

  // In every chunk, then halving what remains by one bit of the chunk's number after the other.
  [[gnu::target("avx512vbmi"), gnu::always_inline]] inline __m512i look_up(__m512i place,
                                                                           __m512i chunk) const {
    __m512i found[kChunks];
    for (int c = 0; c < kChunks; ++c) {
      const uint8_t* from = codes + c * kChunk;
      found[c] = _mm512_permutex2var_epi8(_mm512_loadu_si512(from), place,
                                          _mm512_loadu_si512(from + kChunk / 2));
    }
    for (int bit = 1; bit < kChunks; bit *= 2) {
      const __mmask64 upper = _mm512_test_epi8_mask(chunk, _mm512_set1_epi8((char)bit));
      for (int c = 0; c < kChunks / 2 / bit; ++c) {
        found[c] = _mm512_mask_blend_epi8(upper, found[2 * c], found[2 * c + 1]);
      }
    }
    return found[QACT_MUTANT("code_shuffles_chunk")];
  }
};

}  // namespace
}  // namespace qact::core::cpu
#endif
