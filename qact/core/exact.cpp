#include "qact/core/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qact/base/random.h"
#include "qact/core/mutant.h"
#include "qact/core/sort.h"

namespace qact::core {
namespace {

// The context with both bounds in place: calls visit(value, positive) in ascending order.
template <class Real, class Visit>
void for_each_with_bounds(const SortedContext<Real>& context, double bound, const Visit& visit) {
  bool low_seen = false, high_seen = false;
  for (const Real value : context.values) {
    if (!low_seen && value > -bound) visit(-bound, false), low_seen = true;
    if (!high_seen && value > bound) visit(bound, true), high_seen = true;
    visit(static_cast<double>(value), value >= 0);
  }
  if (!low_seen) visit(-bound, false);
  if (!high_seen) visit(bound, true);
}

}  // namespace

template <class Real>
void SortedContext<Real>::sort() {
  std::erase_if(values, [](Real v) { return std::isnan(v); });
  sort_values(values.data(), static_cast<int64_t>(values.size()), scratch);
  if (QACT_MUTANT("sorted_drops_ties"))
    values.erase(std::unique(values.begin(), values.end()), values.end());
  const Real zero =
      QACT_MUTANT("sorted_zero_is_negative") ? std::numeric_limits<Real>::min() : Real{0};
  negatives = std::lower_bound(values.begin(), values.end(), zero) - values.begin();
}

template <class Real>
int64_t SortedContext<Real>::rank(Real x, double bound) const {
  const int64_t below = std::upper_bound(values.begin(), values.end(), x) - values.begin();
  return x < 0 ? below + (x >= -bound) : below - negatives + (x >= bound);
}

template <class Real>
void MemberLevels<Real>::build(const SortedContext<Real>& context, const Quantile& quantile) {
  const auto& values = context.values;
  const int64_t n = static_cast<int64_t>(values.size());
  const LevelRule rule(quantile, context.negatives, context.positives());
  thresholds.clear();
  for (int64_t i = 0; i < n;) {
    const Real value = values[i];
    int64_t end = i + 1;
    while (end < n && values[end] == value) ++end;
    const bool positive = value >= 0;
    const int64_t rank = positive ? end - context.negatives + (value >= quantile.bound)
                                  : end + (value >= -quantile.bound);
    const int level = rule.level(positive, rank);
    thresholds.resize(std::max<size_t>(thresholds.size(), level), value);
    i = end;
  }
  reached = static_cast<int32_t>(thresholds.size());
  size_t size = 1;
  while (size - 1 < thresholds.size()) size *= 2;
  thresholds.resize(size - 1, std::numeric_limits<Real>::infinity());
}

template <class Real>
void weighted_quantiles(const SortedContext<Real>& context, const Quantile& quantile,
                        double* quantiles) {
  const LevelRule rule(quantile, context.negatives, context.positives());
  double value = 0, weight = 0;  // the last point and the cumulative weight up to it
  int64_t rank[2] = {0, 0};
  int j = 0;
  bool first = true;
  for_each_with_bounds(context, quantile.bound, [&](double next, bool positive) {
    const double next_weight = rule.cumulative(positive, ++rank[positive]);
    for (; j < quantile.levels; ++j) {
      const double tau = (j + 1.0) / (quantile.levels + 1.0);
      if (tau > next_weight) break;
      const double t = first || QACT_MUTANT("quantiles_interpolation")
                           ? 1.0
                           : (tau - weight) / (next_weight - weight);
      const bool finite = std::isfinite(value) && std::isfinite(next);
      // std::lerp ascends, and ties stay what they are.
      quantiles[j] = finite && t < 1.0 ? std::lerp(value, next, t) : next;
    }
    value = next;
    weight = next_weight;
    first = false;
  });
  for (; j < quantile.levels; ++j) quantiles[j] = value;
}

template <class Real>
GaussSum context_density(const SortedContext<Real>& context, const Quantile& quantile,
                         int64_t channel) {
  const LevelRule rule(quantile, context.negatives, context.positives());
  GaussSum density(quantile.bandwidth);
  if (quantile.density_samples == 0) {
    for_each_with_bounds(context, quantile.bound, [&](double value, bool positive) {
      density.add(value, rule.weight(positive));
    });
  } else {
    // Sorted uniform numbers meet the cumulative weights in one sweep.
    std::vector<double> draws(quantile.density_samples);
    base::Random random(quantile.seed, base::Stream::density, channel);
    for (double& draw : draws) draw = random.uniform();
    std::sort(draws.begin(), draws.end());
    const double each = 1.0 / static_cast<double>(draws.size());
    size_t next = 0;
    double last = 0;
    int64_t rank[2] = {0, 0};
    for_each_with_bounds(context, quantile.bound, [&](double value, bool positive) {
      const double weight = rule.cumulative(positive, ++rank[positive]);
      for (; next < draws.size() && draws[next] < weight; ++next) density.add(value, each);
      last = value;
    });
    for (; next < draws.size(); ++next) density.add(last, each);
  }
  density.finish();
  return density;
}

#define QACT_INSTANTIATE(Real)                                                                  \
  template struct SortedContext<Real>;                                                          \
  template struct MemberLevels<Real>;                                                           \
  template void weighted_quantiles<Real>(const SortedContext<Real>&, const Quantile&, double*); \
  template GaussSum context_density<Real>(const SortedContext<Real>&, const Quantile&, int64_t);
QACT_INSTANTIATE(float)
QACT_INSTANTIATE(double)
#undef QACT_INSTANTIATE

}  // namespace qact::core
