// Two problems that no fixed function of a sample solves, but that its context gives away.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <string>

#include "qact/base/random.h"

namespace qact::toy {

// One context: samples of shape (n, features) and their labels 0 or 1 of shape (n).
struct ToyBatch {
  at::Tensor x, y;
};

struct ToyProblem {
  const char* name;
  int64_t features;
  double bayes;  // the accuracy of the best classifier that knows the context
  ToyBatch (*draw)(int64_t n, base::Random& random);
};

// circle, monotone.
std::span<const ToyProblem> toy_problems();
const ToyProblem& toy_problem(const std::string& name);

// circle: two normal classes of deviation 0.1, half of the samples each. The first's mean
// lies at `angle` on the unit circle, the second's 30 degrees further: wherever a point is,
// some context makes it either class.
inline constexpr double kCircleSigma = 0.1;
inline constexpr double kCircleTurn = 0.52359877559829887;  // 30 degrees
ToyBatch circle_batch(double angle, int64_t n, base::Random& random);
double circle_angle(base::Random& random);

// monotone: 8 features, each passed through an increasing map of its own that the context
// draws: linear between equidistant knots, with increments whose logarithms are normal, and
// so scaled at random too. The label asks whether a sample's first four ranks among the
// context's outweigh the other four.
class IncreasingMap {
 public:
  static constexpr int kPieces = 8;

  explicit IncreasingMap(base::Random& random);
  double operator()(double u) const;  // u in [0, 1]

 private:
  std::array<double, kPieces + 1> knots_;
};

}  // namespace qact::toy
