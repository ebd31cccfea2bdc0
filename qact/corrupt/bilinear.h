// Bilinear interpolation at one point.
#pragma once

#include <cmath>
#include <cstdint>

#include "qact/corrupt/filter.h"

namespace qact::corrupt {

// The image (HWC) at (y, x), computed in W, the type of the coordinates. `border` says what lies
// outside.
template <class T, class W>
void sample_bilinear(const T* in, image::Size size, Border border, W y, W x, T* out) {
  const W top = std::floor(y), left = std::floor(x);
  const W down = y - top, right = x - left;
  const int y0 = static_cast<int>(top), x0 = static_cast<int>(left);
  const int rows[2] = {border_index(border, y0, size.height),
                       border_index(border, y0 + 1, size.height)};
  const int columns[2] = {border_index(border, x0, size.width),
                          border_index(border, x0 + 1, size.width)};
  const W weight[2][2] = {{(1 - down) * (1 - right), (1 - down) * right},
                          {down * (1 - right), down * right}};
  W sum[3] = {};
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (rows[i] < 0 || columns[j] < 0) continue;
      const T* pixel = in + (int64_t{rows[i]} * size.width + columns[j]) * size.channels;
      for (int c = 0; c < size.channels; ++c) sum[c] += weight[i][j] * pixel[c];
    }
  }
  for (int c = 0; c < size.channels; ++c) out[c] = static_cast<T>(sum[c]);
}

}  // namespace qact::corrupt
