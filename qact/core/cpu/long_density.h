// The density of a sorted context that is too long for a grid: where its values are, and nowhere
// else.
#pragma once

#include <limits>

#include "qact/core/density.h"
#include "qact/core/levels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

class LongDensity {
 public:
  LongDensity(const Quantile& quantile, const LevelRule& rule)
      : rule_(rule), bound_(quantile.bound), sum_(quantile.bandwidth) {}

  // Values come in ascending order.
  void add(double z) {
    add_bounds(z);
    sum_.add(z, rule_.weight(z >= 0 || QACT_MUTANT("long_density_side")));
  }
  void finish() {
    add_bounds(std::numeric_limits<double>::infinity());
    sum_.finish();
  }
  // Values that tie follow each other often.
  double at(double z) {
    if (z != last_) {
      last_ = z;
      found_ = sum_.at(z);
    }
    return found_;
  }

 private:
  // Those below z.
  void add_bounds(double z) {
    for (; bounds_ < 2 && (bounds_ == 0 ? -bound_ : bound_) <= z; ++bounds_) {
      sum_.add(bounds_ == 0 ? -bound_ : bound_, rule_.weight(bounds_ == 1));
    }
  }

  LevelRule rule_;
  double bound_;
  int bounds_ = 0;  // so many of the two are added
  GaussSum sum_;
  double last_ = std::numeric_limits<double>::quiet_NaN(), found_ = 0;
};

}  // namespace qact::core::cpu
