// The density as the fused layer keeps it for its backward pass: at most kDensityNodes
// nodes over the channel's range, equally far apart in z, linear between them.
//
// A node is one 32-bit word, so that a single gather fetches both ends of a segment: the
// density in units of a 32767th of the highest, and above it the signed step to the next.
#pragma once

#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/cpu/density_grid.h"
#include "qact/core/levels.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

// How many values lie beyond the table at either end of a long-tailed context: they have
// 1/256 of the weight there.
struct ClippedCounts {
  int64_t low, high;

  ClippedCounts(const LevelRule& rule, int64_t negatives, int64_t positives);
};

// The part of a channel's range that its table covers. Beyond it a value has the density
// that its own kernel gives it.
struct DensityRange {
  double low, high;
  bool clipped;

  // Whether the nodes can be a quarter bandwidth apart from low to high.
  static bool fits(double low, double high, double bandwidth);
  // The range from the two values that all but the clipped ones lie between.
  static DensityRange clip(double inner_low, double inner_high, double low, double high,
                           double bandwidth);
};

// Fills `nodes`, kDensityNodes of them, and says in `stats` how to find them.
void pack_density(const TableKernels& tables, const DensityGrid& grid, const DensityRange& range,
                  const LevelRule& rule, const Norm& norm, int32_t* nodes, LayerStats& stats);

}  // namespace qact::core::cpu
