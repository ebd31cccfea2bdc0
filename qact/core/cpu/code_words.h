// The same as code_runs.h in float, looked up among 16-bit words by shuffles, where the CPU has
// AVX-512. Gives the same bits.
#pragma once

#include "qact/core/cpu/code_runs.h"
#include "qact/core/cpu/simd.h"

#if defined(__AVX512BW__)
namespace qact::core::cpu {
namespace {

// A word for each code, in eight registers, where shuffles look it up.
class CodeWords {
 public:
  explicit CodeWords(const int16_t* words) {
    for (int k = 0; k < 8; ++k) words_[k] = _mm512_loadu_si512(words + 32 * k);
  }

  // Codes as words, and which of them have bits 6 and 7.
  struct Codes {
    __m512i code;
    __mmask32 bit6, bit7;

    explicit Codes(__m512i words)
        : code(words),
          bit6(_mm512_test_epi16_mask(words, _mm512_set1_epi16(64))),
          bit7(_mm512_test_epi16_mask(words, _mm512_set1_epi16(128))) {}
    static Codes of_32(const uint8_t* from) {
      return Codes(_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)from)));
    }
    static Codes of_16(const uint8_t* from) {
      return Codes(
          _mm512_castsi256_si512(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)from))));
    }
  };

  __m512i operator()(const Codes& at) const {
    __m512i chunk[4];
    for (int k = 0; k < 4; ++k) {
      chunk[k] = _mm512_permutex2var_epi16(words_[2 * k], at.code, words_[2 * k + 1]);
    }
    const __m512i low = _mm512_mask_mov_epi16(chunk[0], at.bit6, chunk[1]);
    const __m512i high = _mm512_mask_mov_epi16(chunk[2], at.bit6, chunk[3]);
    return _mm512_mask_mov_epi16(low, at.bit7, high);
  }

  static __m512 first(__m512i words) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(words)));
  }
  static __m512 second(__m512i words) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(words, 1)));
  }

 private:
  __m512i words_[8];
};

template <>
struct OutputRun<float> {
  const OutputTable<float>& table;
  CodeWords level;
  __m512 scale, shift;

  explicit OutputRun(const OutputTable<float>& of)
      : table(of),
        level(of.level),
        scale(_mm512_set1_ps(of.scale)),
        shift(_mm512_set1_ps(of.shift)) {}

  void operator()(const uint8_t* code, int64_t n, float* y) const {
    const auto store_y = [&](float* to, __m512 k) {
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_mul_ps(k, scale), shift));
    };
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const __m512i words = level(CodeWords::Codes::of_32(code + i));
      store_y(y + i, CodeWords::first(words));
      store_y(y + i + 16, CodeWords::second(words));
    }
    if (i + 16 <= n) {
      store_y(y + i, CodeWords::first(level(CodeWords::Codes::of_16(code + i))));
      i += 16;
    }
    for (; i < n - QACT_MUTANT("output_words_tail"); ++i) y[i] = table.y[code[i]];
  }
};

template <>
struct GradRun<float> {
  const GradTable<float>& table;
  CodeWords scale, shift;
  __m512 scale_unit, shift_unit;

  explicit GradRun(const GradTable<float>& of)
      : table(of),
        scale(of.scale_units),
        shift(of.shift_units),
        scale_unit(_mm512_set1_ps(of.scale_unit)),
        shift_unit(_mm512_set1_ps(of.shift_unit)) {}

  void operator()(const float* dy, const uint8_t* code, int64_t n, float* dx) const {
    const auto store_dx = [&](int64_t i, __m512 a, __m512 b) {
      const __m512 product = _mm512_mul_ps(_mm512_loadu_ps(dy + i), _mm512_mul_ps(a, scale_unit));
      _mm512_storeu_ps(dx + i, _mm512_add_ps(product, _mm512_mul_ps(b, shift_unit)));
    };
    int64_t i = 0;
    const int64_t in_units = table.scale_unit == 0 || table.shift_unit == 0 ? 0 : n;
    for (; i + 32 <= in_units; i += 32) {
      const auto codes = CodeWords::Codes::of_32(code + i);
      const __m512i a = scale(codes), b = shift(codes);
      store_dx(i, CodeWords::first(a), CodeWords::first(b));
      store_dx(i + 16, CodeWords::second(a), CodeWords::second(b));
    }
    if (i + 16 <= in_units) {
      const auto codes = CodeWords::Codes::of_16(code + i);
      store_dx(i, CodeWords::first(scale(codes)), CodeWords::first(shift(codes)));
      i += 16;
    }
    for (; i < n; ++i) dx[i] = dy[i] * table.scale[code[i]] + table.shift[code[i]];
  }
};

}  // namespace
}  // namespace qact::core::cpu
#endif
