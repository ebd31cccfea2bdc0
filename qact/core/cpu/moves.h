// Values between tensors and strips: widened, narrowed or as they are; in runs where a channel's
// lie side by side, turned four by four where those of a place do (dense layers, channels_last).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "qact/core/cpu/narrow.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

enum class Way { in, out };  // from the tensor to the strips, or back

// One value. Stored is the tensor's type, Real the strip's.
template <Way kWay, class Stored, class Real>
inline void move_value(Stored& stored, Real& strip) {
  if constexpr (std::is_same_v<Stored, Real>) {
    (kWay == Way::in ? strip : stored) = kWay == Way::in ? stored : strip;
  } else if constexpr (kWay == Way::in) {
    strip = widen(stored);
  } else {
    stored = narrow<Stored>(strip);
  }
}

// Four lanes, which every x86-64 has.
typedef float Four __attribute__((vector_size(16)));
typedef uint32_t FourWords __attribute__((vector_size(16)));
typedef uint16_t FourHalves __attribute__((vector_size(8)));

inline Four load_four(const float* at) {
  Four v;
  std::memcpy(&v, at, sizeof(v));
  return v;
}
inline Four load_four(const bfloat16_bits* at) {
  FourHalves bits;
  std::memcpy(&bits, at, sizeof(bits));
  return reinterpret_cast<Four>(__builtin_convertvector(bits, FourWords) << 16);
}
inline Four load_four(const half_bits* at) {
  return Four{widen(at[0]), widen(at[1]), widen(at[2]), widen(at[3])};
}

inline void store_four(const Four& v, float* at) { std::memcpy(at, &v, sizeof(v)); }
inline void store_four(const Four& v, bfloat16_bits* at) {
  const FourWords bits = reinterpret_cast<FourWords>(v);
  const uint32_t half = QACT_MUTANT("bfloat16_four_truncated") ? 0 : 0x7fff;
  const FourWords rounded = (bits + half + ((bits >> 16) & 1)) >> 16;
  const FourWords nan = reinterpret_cast<FourWords>(v != v);
  const auto halves = __builtin_convertvector((nan & 0x7fc0) | (~nan & rounded), FourHalves);
  std::memcpy(at, &halves, sizeof(halves));
}
inline void store_four(const Four& v, half_bits* at) {
  for (int i = 0; i < 4; ++i) at[i] = narrow<half_bits>(v[i]);
}

// Rows become columns.
inline void turn(Four (&v)[4]) {
  const Four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Four c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Four d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// A channel's neighbours.
template <Way kWay, class Stored, class Real>
inline void move_run(Stored* stored, Real* strip, int64_t size) {
  int64_t i = 0;
  if constexpr (std::is_same_v<Real, float>) {
    for (; i + 4 <= size; i += 4) {
      if constexpr (kWay == Way::in) {
        store_four(load_four(stored + i), strip + i);
      } else {
        store_four(load_four(strip + i), stored + i);
      }
    }
  }
  for (; i < size; ++i) move_value<kWay>(stored[i], strip[i]);
}

// Neighbouring channels of a place make a row.
template <class Stored>
struct Rows {
  Stored* first;
  int64_t stride;
  int64_t count;
  int64_t channels;
};

// Rows lie too far apart for the hardware to look ahead.
constexpr int64_t kRowsAhead = 32;

// `pitch`: from strip to strip.
template <Way kWay, class Stored, class Real>
inline void move_rows(const Rows<Stored>& rows, Real* strips, int64_t pitch) {
  const auto each = [&](int64_t row, int64_t from) {
    for (int64_t g = from; g < rows.channels; ++g) {
      move_value<kWay>(rows.first[row * rows.stride + g], strips[g * pitch + row]);
    }
  };
  int64_t row = 0;
  if constexpr (std::is_same_v<Real, float>) {
    for (; row + 4 <= rows.count; row += 4) {
      Stored* stored = rows.first + row * rows.stride;
      if (row + kRowsAhead < rows.count) {
        for (int k = 0; k < 4; ++k) {
          __builtin_prefetch(stored + (kRowsAhead + k) * rows.stride, kWay == Way::out, 3);
        }
      }
      int64_t g = 0;
      for (; g + 4 <= rows.channels; g += 4) {
        Real* strip = strips + g * pitch + row;
        Four v[4];
        for (int k = 0; k < 4; ++k) {
          v[k] = kWay == Way::in ? load_four(stored + k * rows.stride + g)
                                 : load_four(strip + k * pitch);
        }
        turn(v);
        for (int k = 0; k < 4; ++k) {
          if constexpr (kWay == Way::in) {
            store_four(v[k], strip + k * pitch);
          } else {
            store_four(v[k], stored + k * rows.stride + g);
          }
        }
      }
      for (int k = QACT_MUTANT("channels_last_column"); k < 4; ++k) each(row + k, g);
    }
  }
  for (; row < rows.count; ++row) each(row, 0);
}

}  // namespace qact::core::cpu
