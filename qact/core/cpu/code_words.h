// The same as code_runs.h in float, looked up among 16-bit words by shuffles, where the CPU has
// AVX-512. Gives the same bits.
#pragma once

#include "qact/core/cpu/code_runs.h"
#include "qact/core/cpu/simd.h"

#if defined(__AVX512BW__)
namespace qact::core::cpu {
namespace {

// 32 codes as words, and which of them have bits 6 and 7.
struct CodeLanes {
  __m512i code;
  __mmask32 bit6, bit7;

  explicit CodeLanes(const uint8_t* from)
      : code(_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)from))),
        bit6(_mm512_test_epi16_mask(code, _mm512_set1_epi16(64))),
        bit7(_mm512_test_epi16_mask(code, _mm512_set1_epi16(128))) {}
};

// A word for each code, where shuffles look it up: in eight registers,
struct WordsInRegisters {
  __m512i words[8];

  explicit WordsInRegisters(const int16_t* from) {
    for (int k = 0; k < 8; ++k) words[k] = _mm512_loadu_si512(from + 32 * k);
  }
  __m512i operator[](int k) const { return words[k]; }
};
// or in memory, for a few values.
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

// A 16-bit output is the word itself; a float is level * scale + shift. `Words` say where the table
// is.
template <class Stored, class Words>
struct OutputVectors {
  Words words;
  __m512 scale, shift;

  explicit OutputVectors(const OutputTable<float>& of)
      : words{of.words}, scale(_mm512_set1_ps(of.scale)), shift(_mm512_set1_ps(of.shift)) {}

  // Of 32 codes, in halves.
  void operator()(const uint8_t* code, Stored* first, Stored* second) const {
    const __m512i found = look_up(words, CodeLanes(code));
    if constexpr (sizeof(Stored) == 2) {
      _mm256_storeu_si256((__m256i*)first, _mm512_castsi512_si256(found));
      _mm256_storeu_si256((__m256i*)second, _mm512_extracti64x4_epi64(found, 1));
    } else {
      _mm512_storeu_ps(first, _mm512_add_ps(_mm512_mul_ps(first_half(found), scale), shift));
      _mm512_storeu_ps(second, _mm512_add_ps(_mm512_mul_ps(second_half(found), scale), shift));
    }
  }
};

template <class Stored>
struct OutputRun<float, Stored> {
  const OutputTable<float>& table;
  OutputVectors<Stored, WordsInRegisters> vectors;

  explicit OutputRun(const OutputTable<float>& of) : table(of), vectors(of) {}

  static void two_vectors(const OutputTable<float>& table, const uint8_t* code, Stored* first,
                          Stored* second) {
    OutputVectors<Stored, WordsInMemory>{table}(code, first, second);
  }

  void operator()(const uint8_t* code, int64_t n, Stored* y) const {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) vectors(code + i, y + i, y + i + 16);
    output_one_by_one(table, code + i, n - i - QACT_MUTANT("output_words_tail"), y + i);
  }
};

// dx = dy * (a * scale_unit) + b * shift_unit
template <class Stored, class Words>
struct GradVectors {
  Words scale, shift;
  __m512 scale_unit, shift_unit;

  explicit GradVectors(const GradTable<float>& of)
      : scale{of.scale_units},
        shift{of.shift_units},
        scale_unit(_mm512_set1_ps(of.scale_unit)),
        shift_unit(_mm512_set1_ps(of.shift_unit)) {}

  void operator()(const float* dy, const uint8_t* code, Stored* first, Stored* second) const {
    const CodeLanes codes(code);
    const __m512i a = look_up(scale, codes), b = look_up(shift, codes);
    store_dx(dy, first_half(a), first_half(b), first);
    store_dx(dy + 16, second_half(a), second_half(b), second);
  }

 private:
  void store_dx(const float* dy, __m512 a, __m512 b, Stored* dx) const {
    const __m512 product = _mm512_mul_ps(_mm512_loadu_ps(dy), _mm512_mul_ps(a, scale_unit));
    const __m512 sum = _mm512_add_ps(product, _mm512_mul_ps(b, shift_unit));
    store_stored(dx, Vec<float>{{(Vec<float>::Part)sum}});
  }
};

template <class Stored>
struct GradRun<float, Stored> {
  const GradTable<float>& table;
  GradVectors<Stored, WordsInRegisters> vectors;

  explicit GradRun(const GradTable<float>& of) : table(of), vectors(of) {}

  // Whether the table can be looked up as words.
  static bool in_units(const GradTable<float>& of) {
    return of.scale_unit != 0 && of.shift_unit != 0;
  }

  static void two_vectors(const GradTable<float>& table, const float* dy, const uint8_t* code,
                          Stored* first, Stored* second) {
    if (in_units(table)) {
      return GradVectors<Stored, WordsInMemory>{table}(dy, code, first, second);
    }
    grad_one_by_one(table, dy, code, 16, first);
    grad_one_by_one(table, dy + 16, code + 16, 16, second);
  }

  void operator()(const float* dy, const uint8_t* code, int64_t n, Stored* dx) const {
    constexpr int64_t kFew = 8;
    if (!in_units(table)) return grad_one_by_one(table, dy, code, n, dx);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) vectors(dy + i, code + i, dx + i, dx + i + 16);
    if (n - i < kFew) return grad_one_by_one(table, dy + i, code + i, n - i, dx + i);
    if (QACT_MUTANT("grad_words_tail")) return;
    float dys[32] = {};
    uint8_t codes[32] = {};
    Stored rest[32];
    std::memcpy(dys, dy + i, (n - i) * sizeof(float));
    std::memcpy(codes, code + i, n - i);
    vectors(dys, codes, rest, rest + 16);
    std::memcpy(dx + i, rest, (n - i) * sizeof(Stored));
  }
};

}  // namespace
}  // namespace qact::core::cpu
#endif
