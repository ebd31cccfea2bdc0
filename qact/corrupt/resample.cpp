#include "qact/corrupt/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qact::corrupt {
namespace {

template <int kChannels>
void add_row(const float* in, const Axis& columns, float gain, float* sum) {
  const int n = static_cast<int>(columns.index.size());
  for (int x = 0; x < n; ++x) {
    const float* pixel = in + columns.index[x] * kChannels;
    const float right = gain * columns.weight[x], left = gain - right;
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
    axis.weight.push_back(static_cast<float>(position - index));
  }
  return axis;
}

void add_resampled(const float* in, image::Size size, const Axis& rows, const Axis& columns,
                   float gain, float* sum) {
  const int n = size.width * size.channels;
  std::vector<float> between(n + size.channels);  // a pixel more, always with weight 0
  for (int y = 0; y < size.height; ++y) {
    const float* upper = in + int64_t{rows.index[y]} * n;
    const float* lower = rows.index[y] + 1 < size.height ? upper + n : upper;
    const float weight = rows.weight[y];
    for (int i = 0; i < n; ++i) between[i] = upper[i] + weight * (lower[i] - upper[i]);
    float* target = sum + int64_t{y} * n;
    if (size.channels == 1) add_row<1>(between.data(), columns, gain, target);
    if (size.channels == 3) add_row<3>(between.data(), columns, gain, target);
    if (size.channels == 4) add_row<4>(between.data(), columns, gain, target);
  }
}

}  // namespace qact::corrupt
