// Two problems that no fixed function of a sample can solve: the label depends on the context.
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

// circle: two normal classes of deviation 0.1, half of the samples each. The mean of class 0 lies
// at `angle` on the unit circle, that of class 1 30 degrees further. Any point is of class 0 in
// some contexts and of class 1 in others.
inline constexpr double kCircleSigma = 0.1;
inline constexpr double kCircleTurn = 0.52359877559829887;  // 30 degrees
ToyBatch circle_batch(double angle, int64_t n, base::Random& random);
double circle_angle(base::Random& random);

// monotone: 8 features. Each context draws an increasing map for each of them: linear between
// equidistant knots, with log-normal increments, so of random scale. The label is 1 where the ranks
// of a sample's first four features, within the context, sum to more than those of the other four.
class IncreasingMap {
 public:
  static constexpr int kPieces = 8;

  explicit IncreasingMap(base::Random& random);
  double operator()(double u) const;  // u in [0, 1]

 private:
  std::array<double, kPieces + 1> knots_;
};

}  // namespace qact::toy
