#include "qact/toy/problem.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace qact::toy {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr int64_t kMonotoneFeatures = 8;
constexpr double kIncrementSpread = 1.5;

double normal(base::Random& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.uniform()));
  return radius * std::cos(2 * kPi * random.uniform());
}

ToyBatch empty_batch(int64_t n, int64_t features) {
  return {at::empty({n, features}, at::kFloat), at::empty({n}, at::kLong)};
}

ToyBatch draw_circle(int64_t n, base::Random& random) {
  return circle_batch(circle_angle(random), n, random);
}

// ranks[i] of u[i]: 0 for the smallest.
std::vector<int64_t> ranks(const std::vector<double>& u) {
  std::vector<int64_t> order(u.size()), rank(u.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return u[a] < u[b]; });
  for (size_t r = 0; r < order.size(); ++r) rank[order[r]] = static_cast<int64_t>(r);
  return rank;
}

ToyBatch draw_monotone(int64_t n, base::Random& random) {
  const ToyBatch batch = empty_batch(n, kMonotoneFeatures);
  float* x = batch.x.mutable_data_ptr<float>();
  std::vector<int64_t> balance(n, 0);
  for (int64_t f = 0; f < kMonotoneFeatures; ++f) {
    const IncreasingMap map(random);
    std::vector<double> u(n);
    for (double& value : u) value = random.uniform();
    const std::vector<int64_t> rank = ranks(u);
    for (int64_t i = 0; i < n; ++i) {
      x[i * kMonotoneFeatures + f] = static_cast<float>(map(u[i]));
      balance[i] += f < kMonotoneFeatures / 2 ? rank[i] : -rank[i];
    }
  }
  int64_t* y = batch.y.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < n; ++i) y[i] = balance[i] > 0;
  return batch;
}

// The means are 2 sin(15 degrees) apart: the boundary is half of that from each, here in
// deviations.
double circle_bayes() {
  const double deviations = std::sin(kCircleTurn / 2) / kCircleSigma;
  return 0.5 * std::erfc(-deviations / std::numbers::sqrt2);
}

}  // namespace

std::span<const ToyProblem> toy_problems() {
  static const ToyProblem problems[] = {
      {"circle", 2, circle_bayes(), draw_circle},
      {"monotone", kMonotoneFeatures, 1.0, draw_monotone},
  };
  return problems;
}

const ToyProblem& toy_problem(const std::string& name) {
  for (const ToyProblem& problem : toy_problems()) {
    if (name == problem.name) return problem;
  }
  throw std::invalid_argument("[toy] expected circle or monotone, got " + name);
}

double circle_angle(base::Random& random) { return 2 * kPi * random.uniform(); }

ToyBatch circle_batch(double angle, int64_t n, base::Random& random) {
  const ToyBatch batch = empty_batch(n, 2);
  float* x = batch.x.mutable_data_ptr<float>();
  int64_t* y = batch.y.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    y[i] = i >= n / 2;
    const double at = angle + static_cast<double>(y[i]) * kCircleTurn;
    x[2 * i] = static_cast<float>(std::cos(at) + kCircleSigma * normal(random));
    x[2 * i + 1] = static_cast<float>(std::sin(at) + kCircleSigma * normal(random));
  }
  return batch;
}

IncreasingMap::IncreasingMap(base::Random& random) {
  knots_[0] = 0;
  for (int k = 1; k <= kPieces; ++k) {
    knots_[k] = knots_[k - 1] + std::exp(kIncrementSpread * normal(random)) / kPieces;
  }
}

double IncreasingMap::operator()(double u) const {
  const double at = u * kPieces;
  const int k = std::clamp(static_cast<int>(at), 0, kPieces - 1);
  return knots_[k] + (at - k) * (knots_[k + 1] - knots_[k]);
}

}  // namespace qact::toy
