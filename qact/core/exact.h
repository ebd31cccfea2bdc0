// The paper's algorithm on one channel: sort, weigh, and read levels off the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/density.h"
#include "qact/core/levels.h"
#include "qact/core/quantile.h"

namespace qact::core {

// A channel's context, sorted, without NaN.
template <class Real>
struct SortedContext {
  std::vector<Real> values;
  int64_t negatives = 0;
  std::vector<uint8_t> scratch;

  // Sorts `values` in place after they were filled in, and drops NaN.
  void sort();

  int64_t positives() const { return static_cast<int64_t>(values.size()) - negatives; }

  // How many values of x's own side are <= x, the appended one included.
  int64_t rank(Real x, double bound) const;
};

// The density of the whole weighted context with both bounds, or of quantile.density_samples
// points drawn from it, the draw depending on the seed and the channel alone.
template <class Real>
GaussSum context_density(const SortedContext<Real>& context, const Quantile& quantile,
                         int64_t channel);

// The levels of a context's own members: level(x) = the number of thresholds <= x.
// Each threshold is itself a member, so that the comparison is exact.
template <class Real>
struct MemberLevels {
  std::vector<Real> thresholds;  // padded with +infinity to a power of two less one
  int32_t reached = 0;           // the highest level that any member has

  void build(const SortedContext<Real>& context, const Quantile& quantile);
};

// q_1..q_levels by linear interpolation on the cumulative weights, for values from
// outside the context. An interval with an infinite end takes its upper end.
template <class Real>
void weighted_quantiles(const SortedContext<Real>& context, const Quantile& quantile,
                        double* quantiles);

}  // namespace qact::core
