// The density as the fused layer keeps it (see core/cpu/density_table.h), by one block: a
// channel's weights on a grid of a quarter bandwidth, one convolution, at most
// kDensityNodes nodes of it packed.
#pragma once

#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/cuda/block.cuh"
#include "qact/core/levels.h"
#include "qact/core/quantile.h"

namespace qact::core::cuda {

inline constexpr int kPerBandwidth = 4;
inline constexpr int kReach = 4 * kPerBandwidth;  // nodes; exp(-8) of the peak
inline constexpr int kMostGridNodes = 4000;
inline constexpr int kMostNodes = kMostGridNodes;  // of a table; kDensityNodes in the fused layer
inline constexpr int kGridRoom = kMostGridNodes + 2 * kReach + 16;

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

// Counts in equal bins of z; before[i]: those below bin i, one more than bins.
struct EvenCounts {
  const uint32_t* before;
  int bins, split;
  double first, width;

  __device__ double centre(int bin) const { return first + (bin + 0.5) * width; }
};

// Where the table lies; beyond it a value has the density that its own kernel gives it.
struct DensityRange {
  double low, high;
  bool clipped;
};

template <int kNodes>
struct DensitySpace {
  float mass[kGridRoom];
  float node[kNodes];
  DensityRange range;
  uint32_t highest;
};

__device__ inline DensityRange density_range(const EvenCounts& counts, const LevelRule& rule,
                                             double bandwidth, int most_nodes) {
  constexpr double kShare = 1.0 / 256, kFalloff = 4, kMargin = 8;
  const double low = counts.first, high = counts.first + counts.bins * counts.width;
  if ((high - low) / bandwidth * kPerBandwidth + kMargin <= most_nodes) {
    return {low, high, false};
  }
  const uint32_t negatives = counts.before[counts.split], total = counts.before[counts.bins];
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
                   fmin(high, low + last * counts.width + kFalloff * bandwidth), false};
  const double most = (kMostGridNodes - kMargin) * bandwidth / kPerBandwidth;
  const double excess = out.high - out.low - most;
  if (excess > 0) {
    out.low += 0.5 * excess;
    out.high = out.low + most;
  }
  out.clipped = out.low > low || out.high < high;
  return out;
}

// The weight that a node gets when every bin's goes to the two nodes around its centre, by
// kNodeLanes neighbouring threads, all of which get it.
inline constexpr int kNodeLanes = 4;
__device__ inline float node_mass(const EvenCounts& counts, const float (&weight)[2], float at,
                                  float spacing) {
  // Bins whose centres lie within one spacing, with one to spare at either end.
  int begin = 0, end = counts.bins;
  const float width = static_cast<float>(counts.width), inverse = 1 / spacing;
  const float first = static_cast<float>(counts.first) + 0.5f * width;
  if (width > 0) {
    begin = max(0, static_cast<int>(fmaxf((at - spacing - first) / width, 0.0f)) - 1);
    const float upto = fminf((at + spacing - first) / width, static_cast<float>(counts.bins));
    end = min(counts.bins, static_cast<int>(upto) + 2);
  }
  float sum[2] = {0, 0};
  for (int b = begin + threadIdx.x % kNodeLanes; b < end; b += kNodeLanes) {
    const float share = 1 - fabsf(first + b * width - at) * inverse;
    const uint32_t count = counts.before[b + 1] - counts.before[b];
    if (share > 0) sum[b >= counts.split] += share * static_cast<float>(count);
  }
  float mass = weight[0] * sum[0] + weight[1] * sum[1];
#pragma unroll
  for (int mask = kNodeLanes / 2; mask > 0; mask /= 2) {
    mass += __shfl_xor_sync(0xffffffffu, mass, mask);
  }
  return mass;
}

// space.node[0..count) in units of a 32767th of the highest, with the step to the next.
template <class Space>
__device__ inline void pack_nodes(Space& space, int count, double first, double gap,
                                  const Norm& norm, int32_t* nodes, LayerStats& stats) {
  constexpr float kUnits = 32767;
  const int last = count - 1;
  if (threadIdx.x == 0) space.highest = 0;
  __syncthreads();
  uint32_t own = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    own = max(own, __float_as_uint(fmaxf(space.node[i], 0.0f)));
  }
  own = __reduce_max_sync(0xffffffffu, own);
  if (threadIdx.x % kWarp == 0 && own > 0) atomicMax(&space.highest, own);
  __syncthreads();
  const float highest = __uint_as_float(space.highest);
  const float inverse = highest > 0 ? kUnits / highest : 0;
  const auto units = [&](int i) { return static_cast<int32_t>(space.node[i] * inverse + 0.5f); };
  for (int i = threadIdx.x; i < max(count, kDensityNodes); i += blockDim.x) {
    nodes[i] = i < last ? (units(i + 1) - units(i)) * 65536 + units(i) : units(last);
  }
  stats.density_scale = norm.scale / gap;
  stats.density_offset = (norm.shift - first) / gap;
  stats.density_last = last;
  stats.density_unit = highest / kUnits;
}

// The nodes of a grid of a quarter bandwidth over a range, of which every step-th is kept.
struct DensityGrid {
  double spacing, first;  // the first node's z is first * spacing
  int nodes, kept;

  __device__ DensityGrid(const DensityRange& range, double bandwidth, int most = kDensityNodes)
      : spacing(bandwidth / kPerBandwidth), first(floor(range.low / spacing) - 1) {
    nodes = static_cast<int>(ceil(range.high / spacing) + 1 - first) + 1;
    kept = nodes < most ? nodes : most;
  }
  __device__ double step() const { return static_cast<double>(nodes - 1) / (kept - 1); }
};

// At a value that no other is near to.
__device__ inline float lone_density(double weight, double bandwidth) {
  constexpr double kInverseSqrt2Pi = 0.3989422804014327;
  return static_cast<float>(weight * kInverseSqrt2Pi / bandwidth);
}

// most: the nodes of the table.
template <class Space>
__device__ inline void pack_density(const EvenCounts& counts, const LevelRule& rule,
                                    const Quantile& quantile, const Norm& norm, Space& space,
                                    int most, int32_t* nodes, LayerStats& stats) {
  if (threadIdx.x == 0) space.range = density_range(counts, rule, quantile.bandwidth, most);
  __syncthreads();
  const DensityRange range = space.range;
  const DensityGrid grid(range, quantile.bandwidth, most);
  const float weight[2] = {static_cast<float>(rule.weight(false)),
                           static_cast<float>(rule.weight(true))};
  const float spacing = static_cast<float>(grid.spacing);
  const int all = grid.nodes + 2 * kReach + 1;
  // Positions are taken from the counts' own origin: far from 0, floats would not tell them.
  EvenCounts shifted = counts;
  shifted.first = counts.first - grid.first * grid.spacing;
  const float bound = static_cast<float>(quantile.bound);
  const float origin = static_cast<float>(grid.first * grid.spacing);
  for (int i = threadIdx.x / kNodeLanes; i - static_cast<int>(threadIdx.x / kNodeLanes) < all;
       i += blockDim.x / kNodeLanes) {
    float mass = node_mass(shifted, weight, (i - kReach) * spacing, spacing);
    for (int side = 0; side < 2; ++side) {
      const float share =
          1 - fabsf((side ? bound : -bound) - origin - (i - kReach) * spacing) / spacing;
      if (share > 0) mass += weight[side] * share;
    }
    if (i < all && threadIdx.x % kNodeLanes == 0) space.mass[i] = mass;
  }
  __syncthreads();
  const auto convolved = [&](int node) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k <= 2 * kReach; ++k) sum += kTaps.at[k] * space.mass[node + k];
    return sum / spacing;
  };
  for (int i = threadIdx.x; i < grid.kept; i += blockDim.x) {
    const double position = fmin(i * grid.step(), static_cast<double>(grid.nodes - 1));
    const int node = static_cast<int>(position);
    const float fraction = static_cast<float>(position - node);
    float density = convolved(node);
    if (fraction > 0) density += (convolved(node + 1) - density) * fraction;
    if (range.clipped && i == 0) {
      density = lone_density(rule.weight(range.low >= 0), quantile.bandwidth);
    } else if (range.clipped && i == grid.kept - 1) {
      density = lone_density(rule.weight(range.high >= 0), quantile.bandwidth);
    }
    space.node[i] = density;
  }
  pack_nodes(space, grid.kept, grid.first * grid.spacing, grid.spacing * grid.step(), norm, nodes,
             stats);
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
