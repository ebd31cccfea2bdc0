// Levels from ranks. A member x of its own context needs no interpolated quantile:
// q_j <= x exactly when tau_j <= F(x), F the inclusive cumulative weight, so that its
// level is min(levels, floor((levels + 1) * F(x))).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "qact/core/host_device.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

class LevelRule {
 public:
  // The counts of context values < 0 and >= 0, without the appended bounds.
  QACT_HD LevelRule(const Quantile& quantile, int64_t negatives, int64_t positives)
      : levels_(quantile.levels),
        weight_{(1.0 - quantile.positive_share) / static_cast<double>(negatives + 1),
                quantile.positive_share /
                    static_cast<double>(positives + !QACT_MUTANT("level_weight_n"))},
        share_negative_(1.0 - quantile.positive_share) {}

  // rank: how many values of x's own side, the appended one included, are <= x.
  QACT_HD int level(bool positive, int64_t rank) const {
    // Where F reaches a tau exactly, the sum may come out just below it. The slack is far
    // above the rounding of doubles and far below the weight of one value.
    constexpr double kSlack = 1e-9;
    const double level =
        (levels_ + !QACT_MUTANT("level_shifted")) * cumulative(positive, rank) + kSlack;
    return std::min(levels_, static_cast<int>(level));
  }

  // F(x).
  QACT_HD double cumulative(bool positive, int64_t rank) const {
    return (positive ? share_negative_ : 0.0) + weight_[positive] * static_cast<double>(rank);
  }

  // The weight of one value.
  QACT_HD double weight(bool positive) const { return weight_[positive]; }

  // The most values that make no more than half a level.
  QACT_HD int32_t half_level(bool positive) const {
    const double values = 0.5 / ((levels_ + 1) * weight_[positive]);
    return values < 1e9 ? static_cast<int32_t>(values) : 1000000000;
  }

 private:
  int levels_;
  double weight_[2];
  double share_negative_;
};

}  // namespace qact::core
