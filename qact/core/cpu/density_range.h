// The part of a context's range over which the fused layer estimates its density.
#pragma once

#include <cstdint>

#include "qact/core/cpu/density_grid.h"
#include "qact/core/levels.h"

namespace qact::core::cpu {

// How many values lie beyond the range at either end of a long-tailed context: they have
// 1/256 of the weight there.
struct ClippedCounts {
  int64_t low, high;

  ClippedCounts(const LevelRule& rule, int64_t negatives, int64_t positives);
};

// Beyond it a value has the density that its own kernel gives it.
struct DensityRange {
  double low, high;
  bool clipped;

  // Whether a grid from low to high is short enough.
  static bool fits(double low, double high, double bandwidth);
  // The range from the two values that all but the clipped ones lie between.
  static DensityRange clip(double inner_low, double inner_high, double low, double high,
                           double bandwidth);

  // The density that the grid has over this range, at z = scale * input + offset.
  DensityNodes nodes(const DensityGrid& grid, const LevelRule& rule, double scale,
                     double offset) const;
};

}  // namespace qact::core::cpu
