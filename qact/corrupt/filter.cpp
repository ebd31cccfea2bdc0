#include "qact/corrupt/filter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qact::corrupt {
namespace {

// Every output is summed in the order of the taps, so wider vectors give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define QACT_WIDER_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define QACT_WIDER_VECTORS
#endif

QACT_WIDER_VECTORS
void weighted_sum(const float* const* rows, const float* weights, int taps, int n, float* out) {
  typedef float Lanes __attribute__((vector_size(32), aligned(4), may_alias));
  constexpr int kLanes = 8, kBlock = 4 * kLanes;
  int i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Lanes first{}, second{}, third{}, fourth{};  // an array would not stay in registers
    for (int t = 0; t < taps; ++t) {
      const Lanes* row = reinterpret_cast<const Lanes*>(rows[t] + i);
      const float weight = weights[t];
      first += weight * row[0];
      second += weight * row[1];
      third += weight * row[2];
      fourth += weight * row[3];
    }
    Lanes* to = reinterpret_cast<Lanes*>(out + i);
    to[0] = first, to[1] = second, to[2] = third, to[3] = fourth;
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (int t = 0; t < taps; ++t) sum += weights[t] * rows[t][i];
    out[i] = sum;
  }
}

// Rows with `left` and `right` pixels more, by the border's rule.
std::vector<float> widen(const float* in, image::Size size, Border border, int left, int right) {
  const int width = left + size.width + right, channels = size.channels;
  std::vector<float> out(int64_t{size.height} * width * channels);
  std::vector<int> from(left + right);
  for (int x = 0; x < left; ++x) from[x] = border_index(border, x - left, size.width);
  for (int x = 0; x < right; ++x) from[left + x] = border_index(border, size.width + x, size.width);
  for (int y = 0; y < size.height; ++y) {
    const float* source = in + int64_t{y} * size.width * channels;
    float* target = out.data() + int64_t{y} * width * channels;
    std::copy_n(source, size.width * channels, target + left * channels);
    for (int k = 0; k < left + right; ++k) {
      const int x = k < left ? k : size.width + k;
      for (int c = 0; c < channels; ++c) {
        target[x * channels + c] = source[from[k] * channels + c];
      }
    }
  }
  return out;
}

// An image with room beside its rows for what the taps reach.
struct Widened {
  int left = 0;
  int64_t stride;
  std::vector<float> copy;
  const float* values;

  Widened(const float* in, image::Size size, Border border, std::span<const Tap> taps) {
    int right = 0;
    for (const Tap& tap : taps) {
      left = std::max(left, -tap.dx);
      right = std::max(right, tap.dx);
    }
    if (left + right > 0) copy = widen(in, size, border, left, right);
    values = copy.empty() ? in : copy.data();
    stride = int64_t{left + size.width + right} * size.channels;
  }
  const float* row(int y) const { return values + y * stride; }
};

// row(y, dy): the row that a tap at dy reads for output row y.
template <class Row>
void correlate_rows(const Widened& wide, image::Size size, std::span<const Tap> taps, float* out,
                    const Row& row) {
  std::vector<const float*> rows(taps.size());
  std::vector<float> weights(taps.size());
  for (size_t t = 0; t < taps.size(); ++t) weights[t] = taps[t].weight;
  const int n = size.width * size.channels;
  for (int y = 0; y < size.height; ++y) {
    for (size_t t = 0; t < taps.size(); ++t) {
      rows[t] = row(y, taps[t].dy) + (wide.left + taps[t].dx) * size.channels;
    }
    weighted_sum(rows.data(), weights.data(), static_cast<int>(taps.size()), n,
                 out + int64_t{y} * n);
  }
}

}  // namespace

int border_index_outside(Border border, int i, int n) {
  if (border == Border::zero) return -1;
  if (border == Border::clamp || n == 1) return std::clamp(i, 0, n - 1);
  const int edge = border == Border::reflect101 ? 1 : 0;
  const int period = 2 * (n - edge);
  i = (i % period + period) % period;
  return i < n ? i : period - 1 + edge - i;
}

void correlate(const float* in, image::Size size, Border border, std::span<const Tap> taps,
               float* out) {
  const Widened wide(in, size, border, taps);
  correlate_rows(wide, size, taps, out, [&](int y, int dy) {
    return wide.row(border_index(border, y + dy, size.height));
  });
}

void correlate_mirrored(const float* in, image::Size size, Border border, std::span<const Tap> taps,
                        float* out) {
  const Widened wide(in, size, border, taps);
  int reach = 0;
  for (const Tap& tap : taps) reach = std::max(reach, tap.dy);
  std::vector<float> folded((reach + 1) * wide.stride);
  int folded_for = -1;
  correlate_rows(wide, size, taps, out, [&](int y, int dy) -> const float* {
    for (int k = 1; folded_for != y && k <= reach; ++k) {
      const float* above = wide.row(border_index(border, y - k, size.height));
      const float* below = wide.row(border_index(border, y + k, size.height));
      float* sum = folded.data() + k * wide.stride;
      for (int64_t i = 0; i < wide.stride; ++i) sum[i] = above[i] + below[i];
    }
    folded_for = y;
    return dy == 0 ? wide.row(y) : folded.data() + dy * wide.stride;
  });
}

std::vector<double> gaussian_weights(double sigma, int radius) {
  std::vector<double> weights;
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    weights.push_back(radius == 0 ? 1 : std::exp(-0.5 * k * k / (sigma * sigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

GaussianBlur::GaussianBlur(double sigma, double truncate, Border border, bool columns_alone)
    : border_(border), columns_alone_(columns_alone) {
  const int radius = static_cast<int>(truncate * sigma + 0.5);
  const std::vector<double> weights = gaussian_weights(sigma, radius);
  for (int k = -radius; k <= radius; ++k) {
    const float weight = static_cast<float>(weights[k + radius]);
    across_.push_back({0, k, weight});
    down_.push_back({k, 0, weight});
  }
}

void GaussianBlur::operator()(std::vector<float>& values, image::Size size) const {
  if (down_.size() == 1) return;
  std::vector<float> other(values.size());
  correlate(values.data(), size, border_, down_, other.data());
  if (columns_alone_) {
    values.swap(other);
  } else {
    correlate(other.data(), size, border_, across_, values.data());
  }
}

}  // namespace qact::corrupt
