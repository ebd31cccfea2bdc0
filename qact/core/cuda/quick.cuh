// The solve of most channels, by a team of threads: bins tell the levels of all values, or of all
// but a few. What this leaves open, heavy_list.cuh or solve.cuh settles.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/refine.cuh"
#include "qact/core/cuda/solve_call.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kHeavyBin = 255;  // in place of a code: the bin is too heavy to tell

__device__ inline bool solves_quickly(const ChannelPlan& plan, const Quantile& quantile) {
  return plan.how == kBinned && !plan.again && !plan.exact && plan.bins.bins > 1 &&
         quantile.levels < kHeavyBin;
}

// How ranks become levels on one side of 0.
struct SideRule {
  uint32_t limit;   // the most values of a bin that tells their level
  int32_t past;     // the first bin past the bound
  int32_t skipped;  // values of the other side, which are not ranked here
  float base, gain;

  __device__ SideRule(const BinPlan<float>& bins, const LevelRule& rule, const Quantile& quantile,
                      uint32_t negatives, bool positive)
      : limit(static_cast<uint32_t>(rule.half_level(positive))),
        skipped(positive ? static_cast<int32_t>(negatives) : 0),
        base(positive ? static_cast<float>((quantile.levels + 1) * (1 - quantile.positive_share))
                      : 0.0f),
        gain(static_cast<float>((quantile.levels + 1) * rule.weight(positive) / 2)) {
    const double begin = positive ? bins.split : 0, end = positive ? bins.bins : bins.split;
    const double anchor = positive ? quantile.bound : -quantile.bound;
    past = static_cast<int32_t>(
        fmin(fmax(floor((anchor - bins.z_first) / bins.z_width) + 1, begin), end));
  }
};

// The sums over a channel's levels. Count: what holds n * levels^2.
template <class Count>
struct LevelTotals {
  uint32_t negatives, heavy;  // heavy: values in bins that are
  Count sum, square;
};

// kBinsEach is odd, so that the threads of a warp meet all banks.
template <class Limit, class Count, int kThreads>
struct QuickSpace {
  static constexpr int kBins = Limit::kBins;
  static constexpr int kBinsEach = (kBins + kThreads) / kThreads | 1;
  static constexpr int kSlots = kBinsEach * kThreads;
  alignas(32) uint32_t before[kSlots];  // counts by bin, then their prefix sums
  Count moment[kSlots];
  alignas(16) uint8_t code[kSlots];
  CodeTotals<Count> codes;
  CodeGrid grid;
  BinCells cells;
  Room<SideRule, 2> side;
  uint32_t warp_count[kWarp], warp_heavy[kWarp];
  Count warp_moment[kWarp], warp_sum[kWarp], warp_square[kWarp];
  LevelTotals<Count> totals;
  DensitySpace<Limit::kGridNodes + 2 * kReach + 16> density;
};

// From counts by bin in space.before to codes by bin, with levels at the middle of each bin's mass
// as the CPU has them. The totals are without the heavy bins. weight: the inner norm's.
template <class Team, class Space>
__device__ inline void settle_quickly(const Team& team, const SolveCall& call,
                                      const ChannelPlan& plan, double weight, uint32_t n,
                                      Space& space) {
  const BinPlan<float>& bins = plan.bins;
  const Quantile& quantile = call.quantile;
  constexpr int kEach = Space::kBinsEach;
  using Count = decltype(space.totals.sum);
  const int first = team.thread * kEach;
  space.codes.clear(team.thread, Team::kThreads);
  uint32_t count[kEach], own = 0;
  Count own_moment = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    count[i] = space.before[first + i];
    own += count[i];
    own_moment += static_cast<Count>(count[i]) * static_cast<Count>(first + i);
  }
  uint32_t before = team.scan(own, space.warp_count);
  Count moment = team.scan(own_moment, space.warp_moment);
  const uint32_t before_first = before;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    space.before[first + i] = before;
    space.moment[first + i] = moment;
    before += count[i];
    moment += static_cast<Count>(count[i]) * static_cast<Count>(first + i);
  }
  team.sync();
  const uint32_t negatives = space.before[bins.split];
  if (team.thread < 2) {
    const LevelRule rule(quantile, negatives, static_cast<int64_t>(n) - negatives);
    space.side.array()[team.thread] = SideRule(bins, rule, quantile, negatives, team.thread == 1);
  } else if (team.thread == Team::kThreads - 1) {  // in another warp, at the same time
    space.grid = CodeGrid(plan, call.norm_in, weight, quantile.levels);
  }
  team.sync();
  space.cells.fill(space.grid, team.thread, Team::kThreads);
  team.sync();
  Count sum = 0, square = 0;
  uint32_t heavy = 0;
  CodeRun run(space.codes);
  before = before_first;
  int cell = space.cells.of(first);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int b = first + i;
    cell = space.cells.of_next(cell, b);
    const SideRule& side = space.side.array()[b >= bins.split];
    const int32_t rank = static_cast<int32_t>(before) + (b >= side.past) - side.skipped;
    const float middle = static_cast<float>(rank * 2 + static_cast<int32_t>(count[i]));
    const int level =
        min(static_cast<int>(__fadd_rn(__fmul_rn(middle, side.gain), side.base)), quantile.levels);
    int code = kHeavyBin;
    if (count[i] > side.limit && !QACT_MUTANT("cuda_heavy_bins_skipped")) {
      heavy += count[i];
    } else {
      const Count levels = static_cast<Count>(count[i]) * static_cast<Count>(level);
      sum += levels;
      square += levels * static_cast<Count>(level);
      code = level + cell;
      run.add(code, level, count[i], b);
    }
    space.code[b] = static_cast<uint8_t>(code);
    before += count[i];
  }
  run.flush();
  team.add_shared(sum, space.warp_sum);
  team.add_shared(square, space.warp_square);
  team.add_shared(heavy, space.warp_heavy);
  team.sync();
  if (team.thread == 0) {
    space.totals = {negatives, Team::sum_shared(space.warp_heavy), Team::sum_shared(space.warp_sum),
                    Team::sum_shared(space.warp_square)};
  }
}

// The context of a channel with bins: each bin's values spread evenly, but for its ties.
template <class Team, class Ties>
__device__ inline void write_binned_context(const Team& team, const BinPlan<float>& bins,
                                            const uint32_t* before, const Ties& ties,
                                            int64_t* row) {
  const float offset = static_cast<float>(-bins.z_first / bins.z_width);
  const float scale = static_cast<float>(1 / bins.z_width);
  const auto below = [&](int i) -> uint32_t {
    const float edge = context_edge(i);
    if (i == 0) return 0;
    if (!(bins.z_width > 0)) {
      return edge > bins.z_first ? before[bins.bins] - ties.before(bins.bins) : 0;
    }
    const float t = fminf(fmaxf(__fadd_rn(__fmul_rn(edge, scale), offset), 0.0f),
                          static_cast<float>(bins.bins));
    const int bin = static_cast<int>(t);
    const uint32_t count = bin < bins.bins ? before[bin + 1] - before[bin] - ties.in(bin) : 0;
    const float part = __fmul_rn(static_cast<float>(count), t - bin);
    return before[bin] - ties.before(bin) + static_cast<uint32_t>(part + 0.5f);
  };
  for (int i = team.thread; i < kContextBins; i += Team::kThreads) {
    row[i] = (static_cast<int64_t>(below(i + 1)) - below(i) + ties.moved_to(i)) * kContextUnit;
  }
}

// Context, table and stats of a channel that settle_quickly has settled. The team's first thread
// has the stats.
template <class Team, class Space, class Ties>
__device__ inline void finish_quickly(const Team& team, const SolveCall& call,
                                      const ChannelPlan& plan, const Affine& in, uint32_t channel,
                                      const Ties& ties, Space& space, const LayerStats& stats) {
  using Count = decltype(space.totals.sum);
  if (call.context) {
    write_binned_context(team, plan.bins, space.before, ties, call.context_of(channel));
  }
  if (call.table) {
    const EvenCounts<Count> counts{space.before,    space.moment,      plan.bins.bins,
                                   plan.bins.split, plan.bins.z_first, plan.bins.z_width};
    place_mass(team, counts, space.totals.negatives, plan.values, call.quantile, space.density);
    const auto density = [&](double z) {
      return density_at(space.density, call.quantile.bandwidth, z);
    };
    fill_table(team, space.codes, space.grid, Places::of_bins(space.grid), in,
               static_cast<double>(plan.values), stats, density, space.density.codes,
               call.table_of(channel));
  }
  if (team.thread == 0) call.put_stats(channel, stats);
}

}  // namespace qact::core::cuda
