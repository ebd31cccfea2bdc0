// The `scores` rows of evaluations, averaged over corruptions. The corruption tone counts only
// where there is no other.
#pragma once

#include <map>
#include <vector>

#include "qact/results/curve.h"

namespace qact::eval {

// One model in one mode with one classifier.
struct EvaluateSummary {
  results::Setting setting;
  uint64_t seed = 0;
  std::map<int, double> accuracy, ece_top, ece_marginal, map100;  // means by severity
  // Means over all corruptions and severities; NaN where there are none, or no clean images.
  double corruption_error = 0, relative_corruption_error = 0;

  // The accuracy at severity `from` minus that at `to`; NaN where one is missing.
  double drop(int from, int to) const;
};

// In the order in which they first appear.
std::vector<EvaluateSummary> summarise(const results::Rows& rows);

}  // namespace qact::eval
