// The density, by a team: a channel's weights on a grid of a quarter bandwidth, and their
// convolution, at some places or, for the plain operator, at all nodes, packed.
#pragma once

#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/cuda/code_table.cuh"
#include "qact/core/cuda/team.cuh"
#include "qact/core/levels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cuda {

inline constexpr int kPerBandwidth = 4;
inline constexpr int kReach = 4 * kPerBandwidth;  // nodes; exp(-8) of the peak
inline constexpr int kMostNodes = 4000;
inline constexpr int kGridRoom = kMostNodes + 2 * kReach + 16;

// The kernel on the grid. The deposit on two neighbours and the interpolation between two
// widen it by a sixth of spacing^2 each, which is taken off its own width.
constexpr double exp_series(double x) {  // for -9 < x <= 0
  double sum = 1, term = 1;
  for (int i = 1; i < 60; ++i) sum += term *= -x / i;
  return 1 / sum;
}
struct Taps {
  float at[2 * kReach + 1] = {};

  constexpr Taps() {
    constexpr double kVariance = kPerBandwidth * kPerBandwidth - 1.0 / 3;
    double total = 0;
    for (int k = -kReach; k <= kReach; ++k) total += exp_series(-0.5 * k * k / kVariance);
    for (int k = -kReach; k <= kReach; ++k) {
      at[k + kReach] = static_cast<float>(exp_series(-0.5 * k * k / kVariance) / total);
    }
  }
};
__constant__ constexpr Taps kTaps{};

// Counts in equal bins of z as prefix sums: before[i] counts the values below bin i, moment[i]
// adds up their bins.
template <class Count>
struct EvenCounts {
  const uint32_t* before;
  const Count* moment;
  int bins, split;
  double first, width;
  bool clipped = false;  // some values lie beyond the bins
};

// Where the table lies. Where values lie beyond an end, they have the density that their own kernel
// gives them.
struct DensityRange {
  double low, high;
  bool cut_low, cut_high;
};

// The nodes of a grid of a quarter bandwidth over a range.
struct DensityGrid {
  double spacing, first;  // the first node's z is first * spacing
  int nodes;

  DensityGrid() = default;
  __device__ DensityGrid(const DensityRange& range, double bandwidth)
      : spacing(bandwidth / kPerBandwidth), first(floor(range.low / spacing) - 1) {
    nodes = static_cast<int>(ceil(range.high / spacing) + 1 - first) + 1;
  }
};

// kMass: as many as the grid's nodes, and kReach more at either end.
template <int kMass>
struct DensitySpace {
  float mass[kMass];
  CodeTableSpace codes;
  uint32_t highest[kWarp];
  DensityRange range;
  DensityGrid grid;
  double origin, reach;  // of the bins: the place of z = 0, and a spacing's length
  double weight[2];
};

template <class Count>
__device__ inline DensityRange density_range(const EvenCounts<Count>& counts, int64_t values,
                                             const Quantile& quantile) {
  const double bandwidth = quantile.bandwidth;
  constexpr double kShare = 1.0 / 256, kFalloff = 4, kMargin = 8;
  const double low = counts.first, high = counts.first + counts.bins * counts.width;
  if ((high - low) / bandwidth * kPerBandwidth + kMargin <= kMostNodes) {
    return {low, high, counts.clipped, counts.clipped};
  }
  const uint32_t negatives = counts.before[counts.split], total = counts.before[counts.bins];
  const LevelRule rule(quantile, negatives, values - negatives);
  // The weight below a bin's lower edge, and above its upper edge.
  const auto below = [&](int bin) {
    const uint32_t n = counts.before[bin];
    return rule.weight(false) * min(n, negatives) + rule.weight(true) * (n - min(n, negatives));
  };
  const double all = rule.weight(false) * negatives + rule.weight(true) * (total - negatives);
  int first = 0, last = counts.bins;
  while (first + 1 < counts.bins && below(first + 1) <= kShare) ++first;
  while (last - 1 > first && all - below(last - 1) <= kShare) --last;
  DensityRange out{fmax(low, low + first * counts.width - kFalloff * bandwidth),
                   fmin(high, low + last * counts.width + kFalloff * bandwidth), false, false};
  const double most = (kMostNodes - kMargin) * bandwidth / kPerBandwidth;
  const double excess = out.high - out.low - most;
  if (excess > 0) {
    out.low += 0.5 * excess;
    out.high = out.low + most;
  }
  out.cut_low = counts.clipped || out.low > low;
  out.cut_high = counts.clipped || out.high < high;
  return out;
}

// The weight that a node gets when every bin's goes to the two nodes around its centre. Places
// are in bins: bin b, whose centre is b + 1/2, has a share of 1 - |b + 1/2 - at| / reach. No bins
// of both sides of 0 lie between two nodes, since 0 is a node.
template <class Count>
__device__ inline float node_mass(const EvenCounts<Count>& counts, const float (&weight)[2],
                                  float at, float reach) {
  const auto first_at = [&](float place) {
    return static_cast<int>(
        fminf(fmaxf(ceilf(place - 0.5f), 0.0f), static_cast<float>(counts.bins)));
  };
  // The values in bins [begin, end); `rise` adds up how many bins they lie past `begin`.
  const auto between = [&](int begin, int end, float& rise) {
    const uint32_t count = counts.before[end] - counts.before[begin];
    rise = static_cast<float>(counts.moment[end] - counts.moment[begin] -
                              static_cast<Count>(count) * static_cast<Count>(begin));
    return static_cast<float>(count);
  };
  const int begin = first_at(at - reach), middle = first_at(at), end = first_at(at + reach);
  float rise = 0, fall = 0;
  const float below = between(begin, middle, rise), above = between(middle, end, fall);
  const float rising = below * (static_cast<float>(begin) + 0.5f - at + reach) + rise;
  const float falling = above * (at + reach - 0.5f - static_cast<float>(middle)) - fall;
  return (weight[begin >= counts.split] * rising + weight[middle >= counts.split] * falling) /
         reach;
}

// At a value that no other is near to.
__device__ inline float lone_density(double weight, double bandwidth) {
  constexpr double kInverseSqrt2Pi = 0.3989422804014327;
  return static_cast<float>(weight * kInverseSqrt2Pi / bandwidth);
}

// The weights on the grid, of so many values, of which so many are negative.
template <class Team, class Count, class Space>
__device__ inline void place_mass(const Team& team, const EvenCounts<Count>& counts,
                                  int64_t negatives, int64_t values, const Quantile& quantile,
                                  Space& space) {
  static_assert(Team::kWarps >= 3);  // of which one divides while the others do
  if (team.thread == 0) {
    const LevelRule rule(quantile, negatives, values - negatives);
    for (int side = 0; side < 2; ++side) space.weight[side] = rule.weight(side);
  } else if (team.thread == kWarp) {
    space.range = density_range(counts, values, quantile);
    space.grid = DensityGrid(space.range, quantile.bandwidth);
  } else if (team.thread == 2 * kWarp) {
    const double bins = 1 / counts.width;
    space.origin = -counts.first * bins;
    space.reach = quantile.bandwidth / kPerBandwidth * bins;
  }
  team.sync();
  const DensityGrid& grid = space.grid;
  const float weight[2] = {static_cast<float>(space.weight[0]),
                           static_cast<float>(space.weight[1])};
  const float spacing = static_cast<float>(grid.spacing), reach = static_cast<float>(space.reach);
  for (int i = team.thread; i < grid.nodes + 2 * kReach + 1; i += Team::kThreads) {
    const double node = grid.first + (i - kReach);
    const float at = static_cast<float>(node * space.reach + space.origin);
    float mass = node_mass(counts, weight, at, reach);
    for (int side = 0; side < 2; ++side) {
      const float bound = static_cast<float>(side ? quantile.bound : -quantile.bound);
      const float share = 1 - fabsf(bound - static_cast<float>(node * grid.spacing)) / spacing;
      if (share > 0) mass += weight[side] * share;
    }
    space.mass[i] = mass;
  }
  team.sync();
}

template <class Space>
__device__ inline float density_of_node(const Space& space, int node) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k <= 2 * kReach; ++k) sum += kTaps.at[k] * space.mass[node + k];
  return sum / static_cast<float>(space.grid.spacing);
}

template <class Space>
__device__ inline float density_at(const Space& space, double bandwidth, double z) {
  const DensityRange& range = space.range;
  const bool beyond = (range.cut_low && z < range.low) || (range.cut_high && z > range.high);
  if (beyond && !QACT_MUTANT("cuda_density_tail")) {
    return lone_density(space.weight[z >= 0], bandwidth);
  }
  const DensityGrid& grid = space.grid;
  const double last = grid.nodes - 1, at = fmin(fmax(z / grid.spacing - grid.first, 0.0), last);
  const int node = min(static_cast<int>(at), grid.nodes - 2);
  const float part = static_cast<float>(at - node), low = density_of_node(space, node);
  return low + (density_of_node(space, node + 1) - low) * part;
}

// The density by value: all nodes in units of a 32767th of the highest, with the step to the next.
// The team's first thread gets where they lie.
template <class Team, class Space>
__device__ inline void pack_density(const Team& team, Space& space, double bandwidth,
                                    const Norm& norm, int32_t* nodes, LayerStats& stats) {
  constexpr float kUnits = 32767;
  const DensityGrid& grid = space.grid;
  const int last = grid.nodes - 1;
  const auto at = [&](int node) {
    if ((node == 0 && space.range.cut_low) || (node == last && space.range.cut_high)) {
      const double end = node == 0 ? space.range.low : space.range.high;
      return lone_density(space.weight[end >= 0], bandwidth);
    }
    return density_of_node(space, node);
  };
  uint32_t own = 0;
  for (int i = team.thread; i <= last; i += Team::kThreads) {
    own = max(own, __float_as_uint(fmaxf(at(i), 0.0f)));
  }
  const float highest = __uint_as_float(team.highest(own, space.highest));
  const float inverse = highest > 0 ? kUnits / highest : 0;
  const auto units = [&](int i) { return static_cast<int32_t>(at(i) * inverse + 0.5f); };
  for (int i = team.thread; i <= last; i += Team::kThreads) {
    nodes[i] = i < last ? (units(i + 1) - units(i)) * 65536 + units(i) : units(last);
  }
  if (team.thread != 0) return;
  stats.density_scale = norm.scale / grid.spacing;
  stats.density_offset =
      norm.shift / grid.spacing - grid.first - QACT_MUTANT("cuda_density_node_shifted");
  stats.density_last = last;
  stats.density_unit = highest / kUnits;
}

// f of a value, in density_unit.
struct DensityAt {
  float centre, scale, offset, last;

  __device__ explicit DensityAt(const LayerStats& s)
      : centre(static_cast<float>(s.mean_in)),
        scale(static_cast<float>(s.density_scale)),
        offset(static_cast<float>(s.density_offset +
                                  (static_cast<double>(centre) - s.mean_in) * s.density_scale)),
        last(static_cast<float>(s.density_last)) {}
  DensityAt() = default;

  __device__ float operator()(float d, const int32_t* nodes) const {
    const float t = fminf(fmaxf(d * scale + offset, 0.0f), last);
    const int at = static_cast<int>(t);
    const int32_t word = nodes[at];
    return static_cast<float>(word & 0xffff) + static_cast<float>(word >> 16) * (t - at);
  }
};

}  // namespace qact::core::cuda
