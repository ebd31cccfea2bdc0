#include "qact/metrics/principal_components.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "qact/base/parallel.h"

namespace qact::metrics {
namespace {

using base::parallel_for;

constexpr int kRounds = 60;  // of orthogonal iteration

double dot(const double* a, const double* b, int64_t n) {
  double sum[4] = {};
  for (int64_t i = 0; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) sum[k] += a[i + k] * b[i + k];
  }
  for (int64_t i = n - n % 4; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// One dimension after the other: [dims][n], each with mean 0.
std::vector<double> centred_columns(std::span<const float> values, int64_t dims) {
  const int64_t n = static_cast<int64_t>(values.size()) / dims;
  std::vector<double> columns(values.size());
  for (int64_t d = 0; d < dims; ++d) {
    double mean = 0;
    for (int64_t i = 0; i < n; ++i) mean += values[i * dims + d];
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) columns[d * n + i] = values[i * dims + d] - mean;
  }
  return columns;
}

// Gram-Schmidt, row by row. A row that the earlier ones span becomes 0.
void orthonormalise(std::vector<double>& rows, int64_t count, int64_t dims) {
  for (int64_t r = 0; r < count; ++r) {
    double* row = rows.data() + r * dims;
    const double before = std::sqrt(dot(row, row, dims));
    for (int pass = 0; pass < 2; ++pass) {  // the second removes what rounding left
      for (int64_t s = 0; s < r; ++s) {
        const double* other = rows.data() + s * dims;
        const double along = dot(row, other, dims);
        for (int64_t d = 0; d < dims; ++d) row[d] -= along * other[d];
      }
    }
    const double length = std::sqrt(dot(row, row, dims));
    const double scale = length > 1e-9 * before ? 1 / length : 0;
    for (int64_t d = 0; d < dims; ++d) row[d] *= scale;
  }
}

}  // namespace

std::vector<float> principal_components(std::span<const float> values, int64_t dims, int64_t count,
                                        int threads) {
  const int64_t n = static_cast<int64_t>(values.size()) / dims;
  count = std::min(count, dims);
  const std::vector<double> columns = centred_columns(values, dims);
  std::vector<double> covariance(dims * dims);
  parallel_for(dims, threads, 4, [&](int64_t a) {
    for (int64_t b = 0; b <= a; ++b) {
      covariance[a * dims + b] = covariance[b * dims + a] =
          dot(columns.data() + a * n, columns.data() + b * n, n);
    }
  });

  // Orthogonal iteration: directions <- orthonormal(directions * covariance).
  std::mt19937 generator(1);
  std::vector<double> directions(count * dims), next(count * dims);
  for (double& v : directions) v = static_cast<double>(generator()) / 4294967296.0 - 0.5;
  orthonormalise(directions, count, dims);
  for (int round = 0; round < kRounds; ++round) {
    parallel_for(count, threads, 1, [&](int64_t r) {
      for (int64_t d = 0; d < dims; ++d) {
        next[r * dims + d] = dot(directions.data() + r * dims, covariance.data() + d * dims, dims);
      }
    });
    directions.swap(next);
    orthonormalise(directions, count, dims);
  }

  std::vector<float> scores(n * count);
  parallel_for(count, threads, 1, [&](int64_t r) {
    std::vector<double> along(n);
    for (int64_t d = 0; d < dims; ++d) {
      const double part = directions[r * dims + d];
      for (int64_t i = 0; i < n; ++i) along[i] += part * columns[d * n + i];
    }
    for (int64_t i = 0; i < n; ++i) scores[i * count + r] = static_cast<float>(along[i]);
  });
  return scores;
}

}  // namespace qact::metrics
