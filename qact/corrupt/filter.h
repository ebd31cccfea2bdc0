// Correlation with a sparse kernel, on images (HWC) of float or double.
#pragma once

#include <span>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

enum class Border {
  clamp,       // aaa|abcd|ddd
  reflect,     // cba|abcd|dcb
  reflect101,  // dcb|abcd|cba
  zero,        // 000|abcd|000; only sample_bilinear() takes it
};

int border_index_outside(Border border, int i, int n);

// The index in [0, n) whose value is used for i; -1: zero is used.
inline int border_index(Border border, int i, int n) {
  return i >= 0 && i < n ? i : border_index_outside(border, i, n);
}

// One entry of the kernel.
struct Tap {
  int dy = 0, dx = 0;
  double weight = 0;
};

// out(y, x) = sum over taps of weight * in(y + dy, x + dx). `out` must not alias `in`. T: float or
// double.
template <class T>
void correlate(const T* in, image::Size size, Border border, std::span<const Tap> taps, T* out);

// The same for a kernel that is symmetric in dy, of which `taps` has the entries of dy >= 0. Rows
// that mirror each other are added first, which halves the work.
template <class T>
void correlate_mirrored(const T* in, image::Size size, Border border, std::span<const Tap> taps,
                        T* out);

}  // namespace qact::corrupt
