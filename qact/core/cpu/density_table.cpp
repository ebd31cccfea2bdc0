#include "qact/core/cpu/density_table.h"

#include <algorithm>
#include <cmath>

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
  constexpr double kMargins = 5;  // nodes that a grid adds at its ends
  return (high - low) / bandwidth * DensityGrid::kPerBandwidth + kMargins <= kDensityNodes;
}

DensityRange DensityRange::clip(double inner_low, double inner_high, double low, double high,
                                double bandwidth) {
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

void pack_density(const TableKernels& tables, const DensityGrid& grid, const DensityRange& range,
                  const LevelRule& rule, const Norm& norm, int32_t* nodes, LayerStats& stats) {
  const int count = std::min(grid.nodes(), kDensityNodes), last = count - 1;
  const double step = static_cast<double>(grid.nodes() - 1) / last;
  float density[kDensityNodes];
  grid.sample(step, count, density);
  if (range.clipped && !QACT_MUTANT("density_tails")) {
    density[0] = grid.lone(rule.weight(range.low >= 0));
    density[last] = grid.lone(rule.weight(range.high >= 0));
  }
  const double spacing = grid.spacing() * step;
  stats.density_scale = norm.scale / spacing;
  stats.density_offset =
      (norm.shift - grid.first()) / spacing - QACT_MUTANT("density_node_shifted");
  stats.density_last = last;
  stats.density_unit =
      tables.pack_nodes(density, count, nodes) * (QACT_MUTANT("density_1_percent") ? 1.01 : 1);
}

}  // namespace qact::core::cpu
