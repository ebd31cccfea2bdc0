#include "qact/corrupt/gaussian.h"

#include <algorithm>
#include <cmath>

namespace qact::corrupt {
namespace {

// In numpy's order: eight sums side by side, and halves of long arrays.
double pairwise_sum(const double* values, size_t n) {
  if (n > 128) {
    const size_t half = n / 2 / 8 * 8;
    return pairwise_sum(values, half) + pairwise_sum(values + half, n - half);
  }
  double sum[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) sum[k] += values[i + k];
  }
  double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) total += values[i];
  return total;
}

void set_scaled(const double* in, double weight, int64_t n, double* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] = in[i] * weight;
}

void add_pair(const double* a, const double* b, double weight, int64_t n, double* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += (a[i] + b[i]) * weight;
}

// line(k): the values k steps away. The farthest pair is added first.
template <class Line>
void blur_line(const std::vector<double>& weights, int64_t n, const Line& line, double* sum) {
  set_scaled(line(0), weights[0], n, sum);
  for (int k = static_cast<int>(weights.size()) - 1; k > 0; --k) {
    add_pair(line(-k), line(k), weights[k], n, sum);
  }
}

}  // namespace

std::vector<double> gaussian_weights(double sigma, int radius) {
  std::vector<double> weights;
  for (int k = -radius; k <= radius; ++k) {
    weights.push_back(radius == 0 ? 1 : std::exp(-0.5 / (sigma * sigma) * (k * k)));
  }
  const double sum = pairwise_sum(weights.data(), weights.size());
  for (double& weight : weights) weight /= sum;
  return weights;
}

GaussianBlur::GaussianBlur(double sigma, double truncate, Border border, bool columns_only)
    : border_(border), columns_only_(columns_only) {
  const int radius = static_cast<int>(truncate * sigma + 0.5);
  const std::vector<double> weights = gaussian_weights(sigma, radius);
  weights_.assign(weights.begin() + radius, weights.end());
}

template <class T>
void GaussianBlur::operator()(std::vector<T>& values, image::Size size) const {
  const int radius = static_cast<int>(weights_.size()) - 1;
  if (radius == 0) return;
  const int channels = size.channels;
  const int64_t n = int64_t{size.width} * channels;
  const std::vector<double> in(values.begin(), values.end());
  std::vector<double> sum(n), wide(n + int64_t{2} * radius * channels);
  for (int y = 0; y < size.height; ++y) {
    const auto row = [&](int k) {
      return in.data() + border_index(border_, y + k, size.height) * n;
    };
    blur_line(weights_, n, row, sum.data());
    std::copy(sum.begin(), sum.end(), values.begin() + y * n);
  }
  for (int y = 0; y < size.height && !columns_only_; ++y) {
    T* row = values.data() + y * n;
    for (int x = -radius; x < size.width + radius; ++x) {
      const T* pixel = row + border_index(border_, x, size.width) * channels;
      std::copy_n(pixel, channels, wide.begin() + (x + radius) * channels);
    }
    blur_line(
        weights_, n, [&](int k) { return wide.data() + (radius + k) * channels; }, sum.data());
    std::copy(sum.begin(), sum.end(), row);
  }
}

template void GaussianBlur::operator()(std::vector<float>&, image::Size) const;
template void GaussianBlur::operator()(std::vector<double>&, image::Size) const;

}  // namespace qact::corrupt
