#include "qact/corrupt/filter.h"

#include <algorithm>
#include <cstdint>

namespace qact::corrupt {
namespace {

// Every output is summed in the order of the taps, so that wider vectors give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define QACT_WIDER_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define QACT_WIDER_VECTORS
#endif

template <class T>
[[gnu::always_inline]] inline void sum_of(const T* const* rows, const T* weights, int taps, int n,
                                          T* out) {
  typedef T Lanes __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr int kLanes = 32 / sizeof(T), kBlock = 4 * kLanes;
  int i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Lanes first{}, second{}, third{}, fourth{};  // an array would not stay in registers
    for (int t = 0; t < taps; ++t) {
      const Lanes* row = reinterpret_cast<const Lanes*>(rows[t] + i);
      const T weight = weights[t];
      first += weight * row[0];
      second += weight * row[1];
      third += weight * row[2];
      fourth += weight * row[3];
    }
    Lanes* to = reinterpret_cast<Lanes*>(out + i);
    to[0] = first, to[1] = second, to[2] = third, to[3] = fourth;
  }
  for (; i < n; ++i) {
    T sum = 0;
    for (int t = 0; t < taps; ++t) sum += weights[t] * rows[t][i];
    out[i] = sum;
  }
}

QACT_WIDER_VECTORS
void weighted_sum(const float* const* rows, const float* weights, int taps, int n, float* out) {
  sum_of(rows, weights, taps, n, out);
}

QACT_WIDER_VECTORS
void weighted_sum(const double* const* rows, const double* weights, int taps, int n, double* out) {
  sum_of(rows, weights, taps, n, out);
}

// Pads each row with `left` and `right` pixels, by the border's rule.
template <class T>
std::vector<T> pad_rows(const T* in, image::Size size, Border border, int left, int right) {
  const int width = left + size.width + right, channels = size.channels;
  std::vector<T> out(int64_t{size.height} * width * channels);
  std::vector<int> from(left + right);
  for (int x = 0; x < left; ++x) from[x] = border_index(border, x - left, size.width);
  for (int x = 0; x < right; ++x) from[left + x] = border_index(border, size.width + x, size.width);
  for (int y = 0; y < size.height; ++y) {
    const T* source = in + int64_t{y} * size.width * channels;
    T* target = out.data() + int64_t{y} * width * channels;
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

// An image whose rows are padded as far as the taps reach.
template <class T>
struct PaddedImage {
  int left = 0;
  int64_t stride;
  std::vector<T> copy;
  const T* values;

  PaddedImage(const T* in, image::Size size, Border border, std::span<const Tap> taps) {
    int right = 0;
    for (const Tap& tap : taps) {
      left = std::max(left, -tap.dx);
      right = std::max(right, tap.dx);
    }
    if (left + right > 0) copy = pad_rows(in, size, border, left, right);
    values = copy.empty() ? in : copy.data();
    stride = int64_t{left + size.width + right} * size.channels;
  }
  const T* row(int y) const { return values + y * stride; }
};

// row(y, dy): the row that a tap at dy reads for output row y.
template <class T, class Row>
void correlate_rows(const PaddedImage<T>& padded, image::Size size, std::span<const Tap> taps,
                    T* out, const Row& row) {
  std::vector<const T*> rows(taps.size());
  std::vector<T> weights(taps.size());
  for (size_t t = 0; t < taps.size(); ++t) weights[t] = static_cast<T>(taps[t].weight);
  const int n = size.width * size.channels;
  for (int y = 0; y < size.height; ++y) {
    for (size_t t = 0; t < taps.size(); ++t) {
      rows[t] = row(y, taps[t].dy) + (padded.left + taps[t].dx) * size.channels;
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

template <class T>
void correlate(const T* in, image::Size size, Border border, std::span<const Tap> taps, T* out) {
  const PaddedImage<T> padded(in, size, border, taps);
  correlate_rows(padded, size, taps, out, [&](int y, int dy) {
    return padded.row(border_index(border, y + dy, size.height));
  });
}

template <class T>
void correlate_mirrored(const T* in, image::Size size, Border border, std::span<const Tap> taps,
                        T* out) {
  const PaddedImage<T> padded(in, size, border, taps);
  int reach = 0;
  for (const Tap& tap : taps) reach = std::max(reach, tap.dy);
  std::vector<T> mirror_sums((reach + 1) * padded.stride);
  int summed_for = -1;
  correlate_rows(padded, size, taps, out, [&](int y, int dy) -> const T* {
    for (int k = 1; summed_for != y && k <= reach; ++k) {
      const T* above = padded.row(border_index(border, y - k, size.height));
      const T* below = padded.row(border_index(border, y + k, size.height));
      T* sum = mirror_sums.data() + k * padded.stride;
      for (int64_t i = 0; i < padded.stride; ++i) sum[i] = above[i] + below[i];
    }
    summed_for = y;
    return dy == 0 ? padded.row(y) : mirror_sums.data() + dy * padded.stride;
  });
}

using Taps = std::span<const Tap>;
template void correlate(const float*, image::Size, Border, Taps, float*);
template void correlate(const double*, image::Size, Border, Taps, double*);
template void correlate_mirrored(const float*, image::Size, Border, Taps, float*);
template void correlate_mirrored(const double*, image::Size, Border, Taps, double*);

}  // namespace qact::corrupt
