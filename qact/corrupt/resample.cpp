#include "qact/corrupt/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qact::corrupt {
namespace {

template <int kChannels, class T>
void add_row(const T* in, const Axis& columns, T gain, T* sum) {
  const int n = static_cast<int>(columns.index.size());
  for (int x = 0; x < n; ++x) {
    const T* pixel = in + columns.index[x] * kChannels;
    const T right = gain * static_cast<T>(columns.weight[x]), left = gain - right;
    for (int c = 0; c < kChannels; ++c) {
      sum[x * kChannels + c] += left * pixel[c] + right * pixel[kChannels + c];
    }
  }
}

}  // namespace

Axis zoom_axis(int n, double factor) {
  const int crop = static_cast<int>(std::ceil(n / factor));
  const int first = (n - crop) / 2;
  const int stretched = static_cast<int>(std::nearbyint(crop * factor));
  const int trim = (stretched - n) / 2;
  Axis axis;
  for (int i = 0; i < n; ++i) {
    const double position =
        stretched > 1 ? (i + trim) * static_cast<double>(crop - 1) / (stretched - 1) : 0;
    const int index = std::clamp(static_cast<int>(position), 0, std::max(crop - 2, 0));
    axis.index.push_back(first + index);
    axis.weight.push_back(position - index);
  }
  return axis;
}

template <class T>
void add_resampled(const T* in, image::Size size, const Axis& rows, const Axis& columns, T gain,
                   T* sum) {
  const int n = size.width * size.channels;
  std::vector<T> between(n + size.channels);  // a pixel more, always with weight 0
  for (int y = 0; y < size.height; ++y) {
    const T* upper = in + int64_t{rows.index[y]} * n;
    const T* lower = rows.index[y] + 1 < size.height ? upper + n : upper;
    const T weight = static_cast<T>(rows.weight[y]);
    for (int i = 0; i < n; ++i) between[i] = upper[i] + weight * (lower[i] - upper[i]);
    T* target = sum + int64_t{y} * n;
    if (size.channels == 1) add_row<1>(between.data(), columns, gain, target);
    if (size.channels == 3) add_row<3>(between.data(), columns, gain, target);
    if (size.channels == 4) add_row<4>(between.data(), columns, gain, target);
  }
}

template void add_resampled(const float*, image::Size, const Axis&, const Axis&, float, float*);
template void add_resampled(const double*, image::Size, const Axis&, const Axis&, double, double*);

}  // namespace qact::corrupt
