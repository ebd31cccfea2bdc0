// The arithmetic of contexts, one channel's kContextBins counts at a time, for every
// device; context.h has the values and the checks around it.
#pragma once

#include <cmath>
#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/host_device.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

// Cumulative counts scaled from a total of `own` to one of `wanted`, both above 0. They are
// rounded, not the counts, so that the result's total is exact.
class ScaledTotal {
 public:
  QACT_HD ScaledTotal(int64_t own, int64_t wanted)
      : own_(own),
        wanted_(wanted),
        ratio_(divide(static_cast<uint64_t>(wanted), static_cast<uint64_t>(own))),
        fits_((ratio_ >> 64) == 0) {}

  QACT_HD int64_t operator()(int64_t seen) const {
    if (seen == own_) return wanted_;
    const Wide product = fits_ ? static_cast<Wide>(seen) * static_cast<uint64_t>(ratio_)
                               : static_cast<Wide>(seen) * ratio_;
    return static_cast<int64_t>(product >> kShift);
  }

  // Where totals are short, 32 bits hold every count, and 64 their products with half of the
  // ratio, which is in units of 2^-48.
  static constexpr int kShift = 48;
  QACT_HD bool is_short() const { return fits_ && own_ < (int64_t{1} << 32); }
  QACT_HD uint64_t ratio() const { return static_cast<uint64_t>(ratio_); }
  QACT_HD int64_t own() const { return own_; }
  QACT_HD int64_t wanted() const { return wanted_; }

 private:
  using Wide = unsigned __int128;

  // wanted * 2^kShift / own. By 64 bits at a time where remainders leave room for half of the
  // shift: a GPU divides 128 bits one by one.
  QACT_HD static Wide divide(uint64_t wanted, uint64_t own) {
    constexpr int kHalf = kShift / 2;
    if (own >> (64 - kHalf)) return (static_cast<Wide>(wanted) << kShift) / own;
    const uint64_t high = (wanted % own) << kHalf, low = (high % own) << kHalf;
    return (static_cast<Wide>(wanted / own) << kShift) + (high / own << kHalf) + low / own;
  }

  int64_t own_, wanted_;
  Wide ratio_;
  bool fits_;  // one product, not three
};

// Adds `row`, scaled from its own total to `wanted` units, to `out`.
QACT_HD inline void add_scaled_context(const int64_t* row, int64_t own, int64_t wanted,
                                       int64_t* out) {
  if (own == 0 || wanted == 0) return;
  const ScaledTotal scaled(own, wanted);
  int64_t seen = 0, written = 0;
  for (int b = 0; b < kContextBins; ++b) {
    if (row[b] == 0) continue;
    seen += row[b];
    const int64_t upto = scaled(seen);
    out[b] += upto - written;
    written = upto;
  }
}

// a scaled to a_units in all plus b scaled to b_units; both below 2^62, so that no count
// overflows. An empty context cedes its weight to the other. `out` is neither a nor b.
QACT_HD inline void blend_contexts(const int64_t* a, int64_t a_units, const int64_t* b,
                                   int64_t b_units, int64_t* out) {
  int64_t own_a = 0, own_b = 0;
  for (int i = 0; i < kContextBins; ++i) {
    own_a += a[i];
    own_b += b[i];
    out[i] = 0;
  }
  if (own_a == 0) b_units += a_units, a_units = 0;
  if (own_b == 0) a_units += b_units, b_units = 0;
  add_scaled_context(a, own_a, a_units, out);
  add_scaled_context(b, own_b, QACT_MUTANT("blend_weight") ? b_units - b_units / 128 : b_units,
                     out);
}

// q_1..q_levels of the weighted context; see context_quantiles in context.h.
QACT_HD inline void context_row_quantiles(const int64_t* row, const Quantile& quantile,
                                          double* quantiles) {
  constexpr int kHalf = kContextBins / 2;
  double units[2] = {0, 0};
  for (int b = 0; b < kContextBins; ++b) units[b >= kHalf] += static_cast<double>(row[b]);
  const double share[2] = {1 - quantile.positive_share, quantile.positive_share};
  double cumulative = 0, last = -quantile.bound;  // the last point, where a gap starts
  int j = 0;
  const auto spread = [&](double low, double high, double weight) {
    for (; j < quantile.levels; ++j) {
      const double tau = (j + 1.0) / (quantile.levels + 1.0);
      if (tau > cumulative + weight) break;
      quantiles[j] =
          low + (high - low) * std::fmax(0.0, QACT_MUTANT("context_quantiles_interpolation")
                                                  ? 0.0
                                                  : (tau - cumulative) / weight);
    }
    cumulative += weight;
    last = high;
  };
  for (int positive = 0; positive < 2; ++positive) {
    const double bound = positive ? quantile.bound : -quantile.bound;
    const double unit = share[positive] / (units[positive] + kContextUnit);
    bool placed = false;
    for (int b = positive * kHalf; b < (positive + 1) * kHalf; ++b) {
      double low = context_edge(b), high = context_edge(b + 1);
      if (!std::isfinite(low)) low = 2 * high;
      if (!std::isfinite(high)) high = 2 * low;
      if (b == kHalf)
        high = low;  // for ties just above 0, which no lower bin of their sign can hold
      if (!placed && 0.5 * (low + high) > bound) {
        spread(std::fmin(last, bound), bound, unit * kContextUnit);
        placed = true;
      }
      if (row[b] > 0) spread(low, high, unit * static_cast<double>(row[b]));
    }
    if (!placed) spread(std::fmin(last, bound), bound, unit * kContextUnit);
    cumulative = positive ? 1.0 : share[0];
  }
  for (; j < quantile.levels; ++j) quantiles[j] = quantile.bound;
  // Bins are in order, but a bound inside a bin may not be.
  for (int i = 1; i < quantile.levels; ++i) {
    quantiles[i] = std::fmax(quantiles[i], quantiles[i - 1]);
  }
}

}  // namespace qact::core
