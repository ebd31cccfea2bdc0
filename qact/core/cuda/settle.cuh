// The codes of a channel's bins, and which bins do not tell.
#pragma once

#include <cstdint>

#include "qact/core/cuda/level_map.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// The smallest key whose bin is at least `bin`.
__device__ inline uint32_t first_key(const BinMap<float>& map, int bin, uint32_t low, uint32_t high,
                                     bool descending) {
  return first_where(low, high,
                     [&](uint32_t key) { return bin_of(key_value(key, descending), map) >= bin; });
}

// Levels at the middle of each bin's mass, as the CPU has them; heavy bins become roots.
// Returns how many.
template <class Space, class Map>
__device__ inline int settle_bins(Space& space, const Ranking& ranking, const Quantile& quantile,
                                  Map& out) {
  const LevelRule& rule = ranking.rule;
  const BinPlan<float>& plan = space.plan.bins;
  const int32_t negatives = static_cast<int32_t>(space.before[plan.split]);
  const bool descending = space.plan.norm.scale < 0;
  const float low = descending ? space.plan.summary.high : space.plan.summary.low;
  const float high = descending ? space.plan.summary.low : space.plan.summary.high;
  int past[2];
  for (int side = 0; side < 2; ++side) {
    const double begin = side ? plan.split : 0, end = side ? plan.bins : plan.split;
    const double anchor = side ? quantile.bound : -quantile.bound;
    const double at = plan.z_width > 0 ? floor((anchor - plan.z_first) / plan.z_width) + 1
                                       : (anchor <= plan.z_first ? begin : end);
    past[side] = static_cast<int>(fmin(fmax(at, begin), end));
  }
  for (int i = threadIdx.x; i <= Space::Limits::kBins / 32; i += blockDim.x) out.heavy[i] = 0;
  for (int b = plan.bins + threadIdx.x; b < Space::Limits::kBins; b += blockDim.x) out.code[b] = 0;
  __syncthreads();
  const int each = (plan.bins + blockDim.x - 1) / blockDim.x;
  const int begin = min(plan.bins, static_cast<int>(threadIdx.x) * each);
  const int end = min(plan.bins, begin + each);
  unsigned long long sum = 0, square = 0;
  uint32_t found = 0;
  uint32_t limit[2];
  float base[2], gain[2];
  for (int side = 0; side < 2; ++side) {
    limit[side] = plan.bins == 1 ? ~0u : static_cast<uint32_t>(rule.half_level(side));
    base[side] =
        side ? static_cast<float>((quantile.levels + 1) * (1 - quantile.positive_share)) : 0.0f;
    gain[side] = static_cast<float>((quantile.levels + 1) * rule.weight(side) / 2);
  }
  const auto level_upto = [&](int b, int32_t upto) {
    const bool positive = b >= plan.split;
    return rule.level(positive, upto + (b >= past[positive]) - (positive ? negatives : 0));
  };
  const bool exact = space.plan.exact && plan.bins > 1;
  const auto is_heavy = [&](int b, int32_t before, int32_t count) {
    if (exact) return count > 0 && level_upto(b, before + 1) != level_upto(b, before + count);
    return static_cast<uint32_t>(count) > limit[b >= plan.split];
  };
  const bool one = plan.bins == 1;  // its values have codes of their own
  CodeRun run(space.codes);
  int cell = one ? 0 : space.cells.of(begin);
  for (int b = begin; b < end; ++b) {
    if (!one) cell = space.cells.of_next(cell, b);
    const int32_t before = static_cast<int32_t>(space.before[b]);
    const int32_t count = static_cast<int32_t>(space.before[b + 1]) - before;
    const bool positive = b >= plan.split;
    const bool beyond = b >= past[positive] && !QACT_MUTANT("cuda_settle_past");
    const int rank = beyond - (positive ? negatives : 0);
    if (is_heavy(b, before, count)) {
      ++found;
      continue;
    }
    const float middle = static_cast<float>((before + rank) * 2 + count);
    int level = min(static_cast<int>(__fadd_rn(__fmul_rn(middle, gain[positive]), base[positive])),
                    quantile.levels);
    if (exact || one) level = level_upto(b, before + count);
    const int code = level + cell;
    out.code[b] = static_cast<uint8_t>(code);
    if (!one) run.add(code, level, count, b);
    sum += static_cast<unsigned long long>(count) * level;
    square += static_cast<unsigned long long>(count) * level * level;
  }
  run.flush();
  sum = sum_warp(sum);
  square = sum_warp(square);
  if (threadIdx.x % kWarp == 0) {
    space.refine.warp_sum[threadIdx.x / kWarp] = sum;
    space.refine.warp_square[threadIdx.x / kWarp] = square;
  }
  uint32_t total = 0;
  uint32_t at = scan_block(found, space.refine.scan, total);
  if (threadIdx.x == 0) {
    for (uint32_t w = 0; w < blockDim.x / kWarp; ++w) {
      space.refine.level_sum += space.refine.warp_sum[w];
      space.refine.square_sum += space.refine.warp_square[w];
    }
  }
  for (int b = begin; b < end && found > 0; ++b) {
    const uint32_t before = space.before[b], count = space.before[b + 1] - before;
    if (!is_heavy(b, before, count)) continue;
    --found;
    const bool positive = b >= plan.split;
    Root root;
    root.lo =
        first_key(plan.map, b, order_key(low, descending), order_key(high, descending), descending);
    root.hi =
        b + 1 == plan.bins
            ? order_key(high, descending)
            : first_key(plan.map, b + 1, root.lo, order_key(high, descending), descending) - 1;
    root.before = before;
    root.count = count;
    root.bin = static_cast<int16_t>(b);
    root.below = -1;
    root.positive = positive;
    root.past_bound = plan.centre(b) >= (positive ? quantile.bound : -quantile.bound);
    root.last = root.base = static_cast<uint8_t>(ranking.level(root, before + count));
    root.cell = static_cast<uint8_t>(one ? 0 : space.cells.of(b));
    out.code[b] = root.cell;
    space.refine.roots[at++] = root;
    atomicOr(&out.heavy[b / 32], 1u << (b % 32));
  }
  __syncthreads();
  return static_cast<int>(total);
}

}  // namespace qact::core::cuda
