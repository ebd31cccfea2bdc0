// The same as code_runs.h in float, looked up among 16-bit words by shuffles, where the CPU has
// AVX-512. Gives the same bits.
#pragma once

#include "qact/core/cpu/code_runs.h"
#include "qact/core/cpu/simd.h"

#if defined(__AVX512BW__)
namespace qact::core::cpu {
namespace {

// Codes as words, and which of them have bits 6 and 7.
struct CodeLanes {
  __m512i code;
  __mmask32 bit6, bit7;

  explicit CodeLanes(__m512i words)
      : code(words),
        bit6(_mm512_test_epi16_mask(words, _mm512_set1_epi16(64))),
        bit7(_mm512_test_epi16_mask(words, _mm512_set1_epi16(128))) {}
  static CodeLanes of_32(const uint8_t* from) {
    return CodeLanes(_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)from)));
  }
  static CodeLanes of_16(const uint8_t* from) {
    return CodeLanes(
        _mm512_castsi256_si512(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)from))));
  }
};

// A word for each code, where shuffles look it up: in eight registers,
struct WordsInRegisters {
  __m512i words[8];

  explicit WordsInRegisters(const int16_t* from) {
    for (int k = 0; k < 8; ++k) words[k] = _mm512_loadu_si512(from + 32 * k);
  }
  __m512i operator[](int k) const { return words[k]; }
};
// or in memory, for a lone vector.
struct WordsInMemory {
  const int16_t* words;

  __m512i operator[](int k) const { return _mm512_loadu_si512(words + 32 * k); }
};

template <class Words>
inline __m512i look_up(const Words& words, const CodeLanes& at) {
  __m512i chunk[4];
  for (int k = 0; k < 4; ++k) {
    chunk[k] = _mm512_permutex2var_epi16(words[2 * k], at.code, words[2 * k + 1]);
  }
  const __m512i low = _mm512_mask_mov_epi16(chunk[0], at.bit6, chunk[1]);
  const __m512i high = _mm512_mask_mov_epi16(chunk[2], at.bit6, chunk[3]);
  return _mm512_mask_mov_epi16(low, at.bit7, high);
}

inline __m512 first_half(__m512i words) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(words)));
}
inline __m512 second_half(__m512i words) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(words, 1)));
}

// A 16-bit output is the word itself; a float is level * scale + shift.
template <class Stored>
struct OutputRun<float, Stored> {
  static constexpr bool kWords = sizeof(Stored) == 2;
  const OutputTable<float>& table;
  WordsInRegisters words;
  __m512 scale, shift;

  explicit OutputRun(const OutputTable<float>& of)
      : table(of),
        words(of.words),
        scale(_mm512_set1_ps(of.scale)),
        shift(_mm512_set1_ps(of.shift)) {}

  // The first 16 of the words,
  static void store_first(__m512i words, __m512 scale, __m512 shift, Stored* y) {
    if constexpr (kWords) {
      _mm256_storeu_si256((__m256i*)y, _mm512_castsi512_si256(words));
    } else {
      _mm512_storeu_ps(y, _mm512_add_ps(_mm512_mul_ps(first_half(words), scale), shift));
    }
  }
  // and the others.
  static void store_second(__m512i words, __m512 scale, __m512 shift, Stored* y) {
    if constexpr (kWords) {
      _mm256_storeu_si256((__m256i*)y, _mm512_extracti64x4_epi64(words, 1));
    } else {
      _mm512_storeu_ps(y, _mm512_add_ps(_mm512_mul_ps(second_half(words), scale), shift));
    }
  }

  static void one_vector(const OutputTable<float>& table, const uint8_t* code, Stored* y) {
    store_first(look_up(WordsInMemory{table.words}, CodeLanes::of_16(code)),
                _mm512_set1_ps(table.scale), _mm512_set1_ps(table.shift), y);
  }
  static void two_vectors(const OutputTable<float>& table, const uint8_t* code, Stored* first,
                          Stored* second) {
    const __m512 scale = _mm512_set1_ps(table.scale), shift = _mm512_set1_ps(table.shift);
    const __m512i found = look_up(WordsInMemory{table.words}, CodeLanes::of_32(code));
    store_first(found, scale, shift, first);
    store_second(found, scale, shift, second);
  }

  void operator()(const uint8_t* code, int64_t n, Stored* y) const {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const __m512i found = look_up(words, CodeLanes::of_32(code + i));
      store_first(found, scale, shift, y + i);
      store_second(found, scale, shift, y + i + 16);
    }
    if (i + 16 <= n) {
      one_vector(table, code + i, y + i);
      i += 16;
    }
    for (; i < n - QACT_MUTANT("output_words_tail"); ++i) {
      if constexpr (kWords) {
        y[i].bits = (uint16_t)table.words[code[i]];
      } else {
        y[i] = table.y[code[i]];
      }
    }
  }
};

template <class Stored>
struct GradRun<float, Stored> {
  const GradTable<float>& table;
  WordsInRegisters scale, shift;
  __m512 scale_unit, shift_unit;

  explicit GradRun(const GradTable<float>& of)
      : table(of),
        scale(of.scale_units),
        shift(of.shift_units),
        scale_unit(_mm512_set1_ps(of.scale_unit)),
        shift_unit(_mm512_set1_ps(of.shift_unit)) {}

  // Whether the table can be looked up as words.
  static bool in_units(const GradTable<float>& of) {
    return of.scale_unit != 0 && of.shift_unit != 0;
  }

  // dx = dy * (a * scale_unit) + b * shift_unit
  static void store_dx(const float* dy, __m512 a, __m512 b, __m512 scale_unit, __m512 shift_unit,
                       Stored* dx) {
    const __m512 product = _mm512_mul_ps(_mm512_loadu_ps(dy), _mm512_mul_ps(a, scale_unit));
    const __m512 sum = _mm512_add_ps(product, _mm512_mul_ps(b, shift_unit));
    store_stored(dx, Vec<float>{{(Vec<float>::Part)sum}});
  }

  static void some(const GradTable<float>& table, const float* dy, const uint8_t* code, int n,
                   Stored* dx) {
    float lanes[16] = {};
    for (int l = 0; l < n; ++l) lanes[l] = dy[l] * table.scale[code[l]] + table.shift[code[l]];
    store_stored_some(dx, load<Vec<float>>(lanes), n);
  }

  static void one_vector(const GradTable<float>& table, const float* dy, const uint8_t* code,
                         Stored* dx) {
    if (!in_units(table)) return some(table, dy, code, 16, dx);
    const auto codes = CodeLanes::of_16(code);
    const __m512i a = look_up(WordsInMemory{table.scale_units}, codes);
    const __m512i b = look_up(WordsInMemory{table.shift_units}, codes);
    store_dx(dy, first_half(a), first_half(b), _mm512_set1_ps(table.scale_unit),
             _mm512_set1_ps(table.shift_unit), dx);
  }
  static void two_vectors(const GradTable<float>& table, const float* dy, const uint8_t* code,
                          Stored* first, Stored* second) {
    if (!in_units(table)) {
      some(table, dy, code, 16, first);
      return some(table, dy + 16, code + 16, 16, second);
    }
    const __m512 scale_unit = _mm512_set1_ps(table.scale_unit);
    const __m512 shift_unit = _mm512_set1_ps(table.shift_unit);
    const auto codes = CodeLanes::of_32(code);
    const __m512i a = look_up(WordsInMemory{table.scale_units}, codes);
    const __m512i b = look_up(WordsInMemory{table.shift_units}, codes);
    store_dx(dy, first_half(a), first_half(b), scale_unit, shift_unit, first);
    store_dx(dy + 16, second_half(a), second_half(b), scale_unit, shift_unit, second);
  }

  void operator()(const float* dy, const uint8_t* code, int64_t n, Stored* dx) const {
    int64_t i = 0;
    const int64_t by_words = in_units(table) ? n : 0;
    for (; i + 32 <= by_words; i += 32) {
      const auto codes = CodeLanes::of_32(code + i);
      const __m512i a = look_up(scale, codes), b = look_up(shift, codes);
      store_dx(dy + i, first_half(a), first_half(b), scale_unit, shift_unit, dx + i);
      store_dx(dy + i + 16, second_half(a), second_half(b), scale_unit, shift_unit, dx + i + 16);
    }
    if (i + 16 <= by_words) {
      one_vector(table, dy + i, code + i, dx + i);
      i += 16;
    }
    for (; i < n; i += 16) some(table, dy + i, code + i, n - i < 16 ? (int)(n - i) : 16, dx + i);
  }
};

}  // namespace
}  // namespace qact::core::cpu
#endif
