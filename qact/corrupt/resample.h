// Separable linear interpolation, and the zoom into an image's centre that keeps its size.
#pragma once

#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

// out[i] = (1 - weight[i]) in[index[i]] + weight[i] in[index[i] + 1] along one axis.
struct Axis {
  std::vector<int> index;
  std::vector<double> weight;

  bool operator==(const Axis&) const = default;
};

// The middle ceil(n / factor) of n pixels, stretched with aligned corners to
// round(ceil(n / factor) * factor) pixels and cropped to n.
Axis zoom_axis(int n, double factor);

// Adds gain * the resampled `in` to `sum`, both of `size`; channels 1, 3 or 4. T: float or double.
template <class T>
void add_resampled(const T* in, image::Size size, const Axis& rows, const Axis& columns, T gain,
                   T* sum);

}  // namespace qact::corrupt
