// Values between tensors and strips, of any type and any strides; see TensorKernels in kernels.h.
// Included once per SIMD level.
#pragma once

#include <utility>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/stored.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

enum class Way { in, out };  // from the tensor to the strips, or back

template <class P, int... kLane>
inline void interleave(const P& a, const P& b, P* two, std::integer_sequence<int, kLane...>) {
  constexpr int kN = sizeof...(kLane);
  two[0] = __builtin_shufflevector(a, b, (kLane % 2 ? kN + kLane / 2 : kLane / 2)...);
  two[1] = __builtin_shufflevector(a, b, (kLane % 2 ? kN + (kN + kLane) / 2 : (kN + kLane) / 2)...);
}

// Rows become columns: every round moves the first bit of an element's place behind its last.
template <class P, int kN>
inline void transpose(P (&v)[kN]) {
  for (int round = 1; round < kN; round *= 2) {
    P next[kN];
    for (int i = 0; i < kN / 2; ++i) {
      interleave(v[i], v[i + kN / 2], next + 2 * i, std::make_integer_sequence<int, kN>{});
    }
    for (int i = 0; i < kN; ++i) v[i] = next[i];
  }
}

// As many rows as there are lanes, of as many neighbouring channels: part by part.
template <Way kWay, class Stored, class Real>
inline void move_block(Stored* first, int64_t stride, Real* strips, int64_t pitch) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>, kPart = kN / kParts;
  V row[kN];
  if constexpr (kWay == Way::in) {
    for (int r = 0; r < kN; ++r) row[r] = load_stored<Real>(first + r * stride);
  }
  for (int p = 0; p < kParts; ++p) {
    for (int q = 0; q < kParts; ++q) {
      Real* corner = strips + p * kPart * pitch + q * kPart;
      typename V::Part block[kPart];
      for (int k = 0; k < kPart; ++k) {
        if constexpr (kWay == Way::in) {
          block[k] = row[q * kPart + k].part[p];
        } else {
          std::memcpy(&block[k], corner + k * pitch, sizeof(block[k]));
        }
      }
      transpose(block);
      for (int k = 0; k < kPart; ++k) {
        if constexpr (kWay == Way::in) {
          std::memcpy(corner + k * pitch, &block[k], sizeof(block[k]));
        } else {
          row[q * kPart + k].part[p] = block[k];
        }
      }
    }
  }
  if constexpr (kWay == Way::out) {
    for (int r = 0; r < kN; ++r) store_stored(first + r * stride, row[r]);
  }
}

// Rows lie far apart, and a line or two is read of each: no hardware looks ahead. So later ones
// come to the second cache in time.
template <Way kWay, class Stored>
inline void prefetch_rows(Stored* first, int64_t stride, int64_t rows, int64_t channels) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < channels; g += 64 / sizeof(Stored)) {
      __builtin_prefetch(first + r * stride + g, kWay == Way::out, 2);
    }
  }
}

// Neighbouring channels of a place make a row (dense layers, channels-last).
template <Way kWay, class Stored, class Real>
inline void move_rows(Stored* first, int64_t stride, int64_t count, int64_t channels, Real* strips,
                      int64_t pitch) {
  constexpr int kN = kLanes<Real>, kAhead = 64;
  for (int64_t row = 0; row < count; row += kN) {
    const int rows = count - row < kN ? (int)(count - row) : kN;
    Stored* at = first + row * stride;
    if (row + kAhead + kN <= count) prefetch_rows<kWay>(at + kAhead * stride, stride, kN, channels);
    for (int64_t g = 0; g < channels; g += kN) {
      const int some = channels - g < kN ? (int)(channels - g) : kN;
      Real* strip = strips + g * pitch + row;
      if (rows == kN && some == kN) {
        move_block<kWay>(at + g, stride, strip, pitch);
        continue;
      }
      for (int r = QACT_MUTANT("channels_last_rest"); r < rows; ++r) {
        if constexpr (kWay == Way::in) {
          store_stored_some(strip + r, load_stored_some<Real>(at + r * stride + g, some), some,
                            pitch);
        } else {
          store_stored_some(at + r * stride + g, load_stored_some<Real>(strip + r, some, pitch),
                            some);
        }
      }
    }
  }
}

// A channel's values, `step` apart.
template <Way kWay, class Stored, class Real, class Size>
inline void move_run(Stored* stored, Size size, int64_t step, Real* strip) {
  constexpr int kN = kLanes<Real>;
  int64_t i = 0;
  for (; step == 1 && i + kN <= size; i += kN) {
    if constexpr (kWay == Way::in) {
      store(strip + i, load_stored<Real>(stored + i));
    } else {
      store_stored(stored + i, load<Vec<Real>>(strip + i));
    }
  }
  for (; i < size; i += kN) {
    const int some = size - i < kN ? (int)(size - i) : kN;
    if constexpr (kWay == Way::in) {
      const auto lanes = load_stored_some<Real>(stored + i * step, some, step);
      store_some(strip + i, lanes, some - QACT_MUTANT("move_run_rest"));
    } else {
      store_stored_some(stored + i * step, load_stored_some<Real>(strip + i, some), some, step);
    }
  }
}

template <Way kWay, class Stored, class Real>
inline void move(Stored* tensor, const RunBlock& runs, Real* strips) {
  if (runs.value_stride != 1 && runs.channel_stride == 1) {
    for (int64_t i = 0; i < runs.images; ++i) {
      move_rows<kWay>(tensor + i * runs.image_stride, runs.value_stride, runs.size, runs.channels,
                      strips + i * runs.size, runs.pitch);
    }
    return;
  }
  for_each_run<kWay == Way::out>(tensor, runs, [&](auto size, Stored* run, int64_t strip, int64_t) {
    move_run<kWay>(run, size, runs.value_stride, strips + strip);
  });
}

template <class Real>
void pack(const void* from, DType dtype, const RunBlock& runs, Real* to) {
  with_stored<Real>(from, dtype, [&](const auto* tensor) { move<Way::in>(tensor, runs, to); });
}

template <class Real>
void unpack(const Real* from, const RunBlock& runs, DType dtype, void* to) {
  with_stored<Real>(to, dtype,
                    [&](auto* tensor) { move<Way::out>(tensor, runs, const_cast<Real*>(from)); });
}

}  // namespace
}  // namespace qact::core::cpu
