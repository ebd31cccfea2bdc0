#include "qact/core/cpu/density_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

constexpr double kFalloff = 4;            // bandwidths in which the kernel dies away
constexpr double kMostBandwidths = 1024;  // of a grid

}  // namespace

ClippedCounts::ClippedCounts(const LevelRule& rule, int64_t negatives, int64_t positives) {
  constexpr double kShare = 1.0 / 256;
  const auto count = [&](bool first, int64_t of_first, int64_t of_second) {
    const double weight = rule.weight(first);
    const double whole = weight * static_cast<double>(of_first);
    if (whole >= kShare) return static_cast<int64_t>(kShare / weight);
    return std::min(of_first + static_cast<int64_t>((kShare - whole) / rule.weight(!first)),
                    of_first + of_second - 1);
  };
  low = count(false, negatives, positives);
  high = count(true, positives, negatives);
}

bool DensityRange::fits(double low, double high, double bandwidth) {
  constexpr double kMostNodes = 2000;
  return (high - low) / bandwidth * DensityGrid::kPerBandwidth <= kMostNodes;
}

DensityRange DensityRange::clip(double inner_low, double inner_high, double low, double high,
                                double bandwidth) {
  constexpr double kFar = std::numeric_limits<float>::max();  // z may overflow where x does not
  for (double* z : {&inner_low, &inner_high, &low, &high}) *z = std::clamp(*z, -kFar, kFar);
  DensityRange out{std::max(low, inner_low - kFalloff * bandwidth),
                   std::min(high, inner_high + kFalloff * bandwidth), false};
  const double excess = out.high - out.low - kMostBandwidths * bandwidth;
  if (excess > 0) {
    out.low += 0.5 * excess;
    out.high = out.low + kMostBandwidths * bandwidth;
  }
  out.clipped = out.low > low || out.high < high;
  return out;
}

DensityNodes DensityRange::nodes(const DensityGrid& grid, const LevelRule& rule, double scale,
                                 double offset) const {
  const auto place = [&](double z) {
    return static_cast<float>((z - grid.first()) / grid.spacing());
  };
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const bool cut = clipped && !QACT_MUTANT("density_tails");
  return {grid.density(),
          static_cast<float>(scale / grid.spacing()),
          place(offset) - QACT_MUTANT("density_node_shifted"),
          static_cast<float>(grid.nodes() - 1),
          cut ? place(low) : -kNever,
          cut ? place(high) : kNever,
          grid.lone(rule.weight(low >= 0)),
          grid.lone(rule.weight(high >= 0))};
}

}  // namespace qact::core::cpu
