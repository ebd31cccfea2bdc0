// Channels whose values no equal bins can serve: ranked as a whole.
#pragma once

#include <cstdint>

#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/refine.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// The smallest float x with z(x) >= level, in the order of z.
__device__ inline uint32_t key_of_z(const Norm& norm, double z) {
  const bool descending = norm.scale < 0;
  const double wanted = norm.x(z);
  float x = static_cast<float>(wanted);
  if (descending ? x > wanted : x < wanted) x = nextafterf(x, descending ? -INFINITY : INFINITY);
  return order_key(x, descending);
}

// A channel without bins: four roots, by sign and by the bound. Returns how many hold
// values; `negatives` counts the values of z < 0.
template <class Space, class T>
__device__ inline int make_sides(Space& space, const Values<T>& values, const Quantile& quantile,
                                 int64_t& negatives) {
  const Norm& norm = space.plan.norm;
  const bool descending = norm.scale < 0;
  auto& refine = space.refine;
  if (threadIdx.x == 0) {
    refine.lo[0][0] = 0;
    refine.lo[0][1] = key_of_z(norm, -quantile.bound);
    refine.lo[0][2] = key_of_z(norm, 0);
    refine.lo[0][3] = key_of_z(norm, quantile.bound);
    for (int side = 0; side < 4; ++side) refine.cell[side] = 0;
  }
  __syncthreads();
  for_each_ahead<Space::Limits::kAhead>(
      values.n, [&](uint32_t i) { return values[i]; },
      [&](float x) {
        if (isnan(x)) return;
        atomicAdd(&refine.cell[interval_of(refine.lo[0], 4, order_key(x, descending))], 1u);
      });
  __syncthreads();
  negatives = static_cast<int64_t>(refine.cell[0]) +
              (QACT_MUTANT("cuda_sides_negatives") ? 0 : refine.cell[1]);
  const LevelRule rule(quantile, negatives, space.plan.values - negatives);
  const float low = descending ? space.plan.summary.high : space.plan.summary.low;
  const float high = descending ? space.plan.summary.low : space.plan.summary.high;
  int roots = 0, below = 0;
  uint32_t before = 0;
  for (int side = 0; side < 4; ++side) {
    const uint32_t count = refine.cell[side];
    if (count == 0) continue;
    Root root;
    root.lo = max(refine.lo[0][side], order_key(low, descending));
    root.hi = order_key(high, descending);
    if (side < 3) root.hi = min(root.hi, refine.lo[0][side + 1] - 1);
    root.before = before;
    root.count = count;
    root.bin = 0;
    root.below = static_cast<int16_t>(below);
    root.positive = side >= 2;
    root.past_bound = side % 2;
    before += count;
    below = Ranking{rule, negatives, 0, false}.level(root, before);
    if (threadIdx.x == 0) refine.roots[roots] = root;
    ++roots;
  }
  __syncthreads();
  return roots;
}

// Equal bins of z over the thresholds' range, for the density of a channel without bins.
template <class Space, class T>
__device__ inline EvenCounts<unsigned long long> count_evenly(Space& space, const Values<T>& values,
                                                              double bandwidth) {
  constexpr int kBins = Space::Limits::kBins - 32;
  const Norm& norm = space.plan.norm;
  // Tails are cut where no table would reach: well beyond the first and the last threshold.
  const bool descending = norm.scale < 0;
  const auto z_of = [&](uint32_t key) { return norm.z(key_value(key, descending)); };
  int reached = Space::Limits::kLevels;
  while (reached > 1 && space.refine.threshold[reached] == kNoKey) --reached;
  const double tail = 8 * bandwidth;
  const double a = norm.z(space.plan.summary.low), b = norm.z(space.plan.summary.high);
  const double low = fmax(fmax(fmin(a, b), z_of(space.refine.threshold[1]) - tail), -1e30);
  const double high = fmin(fmin(fmax(a, b), z_of(space.refine.threshold[reached]) + tail), 1e30);
  EvenCounts<unsigned long long> counts;
  counts.clipped = fmin(a, b) < low || fmax(a, b) > high;
  counts.width = fmax((high - low) / (kBins - 2), 1e-30);
  const bool zero_inside = low <= 0 && high >= 0;
  counts.first = zero_inside ? floor(low / counts.width) * counts.width : low;
  counts.bins = kBins;
  counts.split =
      zero_inside ? static_cast<int>(rint(-counts.first / counts.width)) : (low >= 0 ? 0 : kBins);
  counts.before = space.before;
  counts.moment = space.table.moment;
  for (int i = threadIdx.x; i <= kBins; i += blockDim.x) space.before[i] = 0;
  __syncthreads();
  for_each_ahead<Space::Limits::kAhead>(
      values.n, [&](uint32_t i) { return values[i]; },
      [&](float x) {
        const double z = norm.z(x);
        if (!(z >= low && z <= high) && !QACT_MUTANT("cuda_counts_beyond")) return;
        int bin = static_cast<int>(
            fmin(fmax(floor((z - counts.first) / counts.width), 0.0), kBins - 1.0));
        if (z < 0) bin = min(bin, counts.split - 1);
        if (z >= 0) bin = max(bin, counts.split);
        atomicAdd(&space.before[min(max(bin, 0), kBins - 1)], 1u);
      });
  __syncthreads();
  scan_array(space.before, kBins + 1, space.refine.scan);
  return counts;
}

}  // namespace qact::core::cuda
