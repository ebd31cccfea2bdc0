// Correlation with a few taps, on images (HWC) of float or double.
#pragma once

#include <span>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

enum class Border {
  clamp,       // aaa|abcd|ddd
  reflect,     // cba|abcd|dcb
  reflect101,  // dcb|abcd|cba
  zero,        // 000|abcd|000, for sample_at alone
};

int border_index_outside(Border border, int i, int n);

// The index inside [0, n) that stands for i; -1 where zero stands.
inline int border_index(Border border, int i, int n) {
  return i >= 0 && i < n ? i : border_index_outside(border, i, n);
}

struct Tap {
  int dy = 0, dx = 0;
  double weight = 0;
};

// out(y, x) = sum over taps of weight * in(y + dy, x + dx). `out` must not be `in`. T: float or
// double.
template <class T>
void correlate(const T* in, image::Size size, Border border, std::span<const Tap> taps, T* out);

// The same for taps that mirror each other above and below: given are those of dy >= 0.
// Mirrored rows are added up first, which halves the work.
template <class T>
void correlate_mirrored(const T* in, image::Size size, Border border, std::span<const Tap> taps,
                        T* out);

}  // namespace qact::corrupt
