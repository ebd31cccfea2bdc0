#include "qact/metrics/neighbour_probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qact/base/parallel.h"

namespace qact::metrics {
namespace {

using base::parallel_for;

constexpr int kSteps = 100;
constexpr double kTolerance = 1e-5;  // of the entropy

// Moments of the distances under exp(-beta d): all that Newton's step needs.
struct Moments {
  double total = 0, mean = 0, square = 0;
};

Moments moments(const std::vector<double>& distances, int64_t self, double beta) {
  constexpr double kNegligible = 60;  // exp(-60) changes no sum of at least 1
  Moments m;
  for (int64_t j = 0; j < static_cast<int64_t>(distances.size()); ++j) {
    if (j == self || beta * distances[j] > kNegligible) continue;
    const double weight = std::exp(-beta * distances[j]);
    m.total += weight;
    m.mean += weight * distances[j];
    m.square += weight * distances[j] * distances[j];
  }
  m.mean /= m.total;
  m.square /= m.total;
  return m;
}

// H(beta) = log total + beta mean falls with slope -beta Var(d). Newton's method in log beta,
// inside a bracket that shrinks.
double find_beta(const std::vector<double>& distances, int64_t self, double perplexity) {
  const double wanted = std::log(perplexity);
  const double mean = moments(distances, self, 0).mean;
  double beta = mean > 0 ? 1 / mean : 1;
  double low = 0, high = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kSteps; ++step) {
    const Moments m = moments(distances, self, beta);
    const double excess = std::log(m.total) + beta * m.mean - wanted;
    if (std::abs(excess) < kTolerance) break;
    (excess > 0 ? low : high) = beta;
    const double slope = beta * beta * (m.square - m.mean * m.mean);
    const double next = slope > 0 ? beta * std::exp(std::clamp(excess / slope, -2.0, 2.0)) : 0;
    const double half = std::isinf(high) ? 2 * beta : (low + high) / 2;
    beta = next > low && next < high ? next : half;
  }
  return beta;
}

std::vector<double> squared_distances(const std::vector<float>& points, int64_t dims, int64_t i) {
  const int64_t n = static_cast<int64_t>(points.size()) / dims;
  std::vector<double> distances(n);
  const float* own = points.data() + i * dims;
  for (int64_t j = 0; j < n; ++j) {
    const float* other = points.data() + j * dims;
    float sums[4] = {};
    for (int64_t d = 0; d + 4 <= dims; d += 4) {
      for (int k = 0; k < 4; ++k)
        sums[k] += (own[d + k] - other[d + k]) * (own[d + k] - other[d + k]);
    }
    for (int64_t d = dims - dims % 4; d < dims; ++d) {
      sums[0] += (own[d] - other[d]) * (own[d] - other[d]);
    }
    distances[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  return distances;
}

}  // namespace

void to_probabilities(std::vector<double>& distances, int64_t self, double perplexity) {
  // Relative to the nearest: the largest weight is then 1 and the sum cannot vanish.
  double nearest = std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < static_cast<int64_t>(distances.size()); ++j) {
    if (j != self) nearest = std::min(nearest, distances[j]);
  }
  for (double& d : distances) d -= nearest;
  const double beta = find_beta(distances, self, perplexity);
  const double total = moments(distances, self, beta).total;
  for (double& d : distances) d = std::exp(-beta * d) / total;
  distances[self] = 0;
}

NeighbourProbabilities::NeighbourProbabilities(const std::vector<float>& points, int64_t dims,
                                               int64_t stride, double perplexity, int threads)
    : stride_(stride) {
  const int64_t n = static_cast<int64_t>(points.size()) / dims;
  p_.assign(n * stride, 0.0f);
  parallel_for(n, threads, 16, [&](int64_t i) {
    std::vector<double> row = squared_distances(points, dims, i);
    to_probabilities(row, i, perplexity);
    std::copy(row.begin(), row.end(), p_.begin() + i * stride);
  });
  // Pair (i, j) is touched by the task of the smaller index alone.
  const float half = 0.5f / static_cast<float>(n);
  parallel_for(n, threads, 16, [&](int64_t i) {
    for (int64_t j = i + 1; j < n; ++j) {
      float &one = p_[i * stride + j], &other = p_[j * stride + i];
      one = other = (one + other) * half;
    }
  });
}

}  // namespace qact::metrics
