// What one block settles for one channel between the passes over the tensor: the level of
// every bin, the thresholds where bins do not tell, the outer norm, density and context. For
// any channel; quick.cuh has the common case.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/context_ties.cuh"
#include "qact/core/cuda/quick.cuh"
#include "qact/core/cuda/settle.cuh"
#include "qact/core/cuda/unbinned.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// The sums of one channel in double, by a block.
template <class T>
__device__ inline Partial summarise_block(const Values<T>& values, Partial* shared) {
  const float shift = shift_of(values[0]);
  Partial all;
  for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) all.add_widely(values[i], shift);
  return merge_block(all, shared);
}

// The second look at a channel whose sums about its first value told too little: a plan from better
// ones, for the block. `shared` holds a Partial of each warp.
template <class T>
__device__ __noinline__ void plan_again(const Values<T>& values, const SolveCall& call,
                                        uint32_t channel, Partial* shared, ChannelPlan& plan) {
  const Partial all = summarise_block(values, shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    plan = make_plan(all, shift_of(values[0]), values.n, call.norm_in, call.norm_in.of(channel),
                     call.quantile);
    plan.again = false;
  }
  __syncthreads();
}

// What a density is made in.
template <class Limit>
struct TableSpace {
  unsigned long long moment[Limit::kBins + 1], warp_moment[kWarp];
  DensitySpace<kGridRoom> density;
};

template <class Limit>
struct SolveSpace {
  using Limits = Limit;
  alignas(32) uint32_t before[Limit::kBins + 1];
  union {  // one after the other
    RefineSpace<Limit> refine;
    TableSpace<Limit> table;
  };
  CodeTotals<unsigned long long> codes;
  CodeGrid grid;
  BinCells cells;
  ChannelPlan plan;
};

// The ties of a channel with bins: those that refine() found, or all that a single bin holds.
template <class Refine>
__device__ inline void place_ties(const ChannelPlan& plan, Refine& space) {
  const bool descending = plan.norm.scale < 0;
  if (threadIdx.x == 0 && plan.bins.bins == 1 && context_is_tie(plan.values, plan.values)) {
    space.ties.add(
        {static_cast<uint32_t>(plan.values), order_key(plan.summary.low, descending), 0, 0});
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < space.ties.count; i += blockDim.x) {
    Tie& tie = space.ties.tie[i];
    tie.to = tie_bin(plan.bins, key_value(tie.key, descending));
  }
  __syncthreads();
}

// The order keys of z.
template <class T>
struct NormKeys {
  const Values<T>& values;
  const Norm& norm;
  uint32_t n;

  __device__ float z(uint32_t i) const { return static_cast<float>(norm.z(values[i])); }
  __device__ uint32_t operator[](uint32_t i) const { return context_key(z(i)); }
};

// The running context's counts: from the bins, or value by value.
template <class Team, class Space, class T>
__device__ inline void write_context(const Team& team, Space& space, const Values<T>& values,
                                     int64_t* row) {
  const ChannelPlan& plan = space.plan;
  uint32_t* count = space.refine.cell;
  __syncthreads();
  if (plan.how == kBinned && !plan.exact) {
    place_ties(plan, space.refine);
    return write_binned_context(team, plan.bins, space.before, space.refine.ties, row);
  }
  const NormKeys<T> keys{values, plan.norm, values.n};
  for (int i = threadIdx.x; i < kContextBins; i += blockDim.x) count[i] = 0;
  __syncthreads();
  if (plan.how != kNotFinite) {
    for_each_ahead<Space::Limits::kAhead>(
        values.n, [&](uint32_t i) { return keys.z(i); },
        [&](float z) {
          if (!isnan(z)) atomicAdd(&count[context_bin(z)], 1u);
        });
  }
  __syncthreads();
  static_assert(Team::kThreads >= kContextBins);
  const uint32_t own = threadIdx.x < kContextBins ? count[threadIdx.x] : 0;
  const int64_t moved = move_ties(keys, own, space.refine);
  if (threadIdx.x < kContextBins) row[threadIdx.x] = moved * kContextUnit;
}

// The prefix sums of count times bin, given those of the counts.
template <class Team, class Space>
__device__ inline void sum_moments(const Team& team, int bins, Space& space) {
  using Count = unsigned long long;
  const int each = (bins + Team::kThreads) / Team::kThreads;
  const int begin = min(bins + 1, team.thread * each), end = min(bins + 1, begin + each);
  const auto moment = [&](int b) {
    return b < bins ? static_cast<Count>(space.before[b + 1] - space.before[b]) * b : Count{0};
  };
  Count own = 0;
  for (int b = begin; b < end - QACT_MUTANT("cuda_solve_moment"); ++b) own += moment(b);
  Count before = team.scan(own, space.table.warp_moment);
  for (int b = begin; b < end; ++b) {
    space.table.moment[b] = before;
    before += moment(b);
  }
  team.sync();
}

// The codes of a channel whose cells are told value by value.
template <class Space, class T, class Map>
__device__ inline void count_codes(const Values<T>& values, const Quantile& quantile, Space& space,
                                   const Map& map) {
  for_each_ahead<Space::Limits::kAhead>(
      values.n, [&](uint32_t i) { return values[i]; },
      [&](float x) {
        const Found found = find_code(x, map, map.code, map.threshold, quantile.levels);
        space.codes.add(found.code, found.level, 1, Places::at(space.grid, space.grid.t(x)));
      });
  __syncthreads();
}

// space.plan is made and, if it has bins, space.before holds their prefix sums.
template <class Team, class T, class Space, class Map>
__device__ inline void solve_channel(const Team& team, const SolveCall& call,
                                     const Values<T>& values, uint32_t channel, Space& space,
                                     Map& out) {
  const Quantile& quantile = call.quantile;
  const ChannelPlan& plan = space.plan;
  const bool descending = plan.norm.scale < 0;
  const Affine in = call.norm_in.of(channel);
  space.codes.clear(threadIdx.x, blockDim.x);
  if (threadIdx.x == 0) {
    space.grid = CodeGrid(plan, call.norm_in, in.weight, quantile.levels);
    space.refine.level_sum = space.refine.square_sum = 0;
    space.refine.ties.count = 0;
  }
  constexpr int kLevels = Space::Limits::kLevels;
  for (int k = threadIdx.x; k <= kLevels; k += blockDim.x) space.refine.threshold[k] = kNoKey;
  __syncthreads();
  if (plan.how == kBinned && plan.bins.bins > 1) {
    space.cells.fill(space.grid, threadIdx.x, blockDim.x);
    __syncthreads();
  }

  int64_t negatives = 0;
  int roots = 0;
  if (plan.how == kBinned) {
    negatives = space.before[plan.bins.split];
    const int64_t positives = plan.values - negatives;
    const LevelRule rule(quantile, negatives, positives);
    const Ranking ranking{rule, negatives, positives, call.context && !plan.exact};
    roots = settle_bins(space, ranking, quantile, out);
    if (roots > 0) {
      Keys<T> keys(values, descending);
      if (plan.exact && call.keys) {
        keys = keep_heavy(values, plan.bins.map, out.heavy, descending,
                          call.keys + static_cast<int64_t>(channel) * values.n, space.refine);
      }
      refine(keys, ranking, space.refine, roots, 0, RootCodes{space.codes});
    }
  } else if (plan.how == kExact) {
    const int sides = make_sides(space, values, quantile, negatives);
    const int64_t positives = plan.values - negatives;
    const LevelRule rule(quantile, negatives, positives);
    refine(Keys<T>(values, descending), Ranking{rule, negatives, positives, false}, space.refine,
           sides, static_cast<uint32_t>(plan.values));
  }
  __syncthreads();
  for (int k = threadIdx.x; k <= kLevels; k += blockDim.x) {
    out.threshold[k] = space.refine.threshold[k];
  }
  for (int r = threadIdx.x; r < roots; r += blockDim.x) {
    const Root& root = space.refine.roots[r];
    out.root_bin[r] = root.bin;
    out.root_base[r] = root.base;
    out.root_last[r] = root.last;
  }

  LayerStats stats = norm_stats(call, plan, static_cast<double>(space.refine.level_sum),
                                static_cast<double>(space.refine.square_sum));
  __syncthreads();
  if (threadIdx.x == 0) {
    out.map = plan.bins.map;
    out.how = plan.how;
    out.descending = descending;
    out.roots = roots;
    out.norm = OutNorm(call, call.affine_out(channel), stats);
    out.grid = space.grid;
    out.by_value = plan.how == kExact || plan.bins.bins == 1;
  }
  for (int c = threadIdx.x; c < kCodes; c += blockDim.x) {
    out.level[c] = static_cast<uint8_t>(space.codes.level[c]);
  }
  __syncthreads();
  if (call.table && plan.how != kNotFinite && out.by_value) {
    count_codes(values, quantile, space, out);
  }
  if (call.context) write_context(team, space, values, call.context_of(channel));
  if (call.table && plan.how == kNotFinite) {
    clear_table(team, stats, call.table_of(channel));
  } else if (call.table || call.density) {
    int32_t* nodes = call.density + int64_t{channel} * kMostNodes;
    if (plan.values == 0) {
      for (int i = threadIdx.x; i < kMostNodes; i += blockDim.x) nodes[i] = 0;
    } else {
      EvenCounts<unsigned long long> counts{space.before,    space.table.moment, plan.bins.bins,
                                            plan.bins.split, plan.bins.z_first,  plan.bins.z_width};
      if (plan.how == kExact) counts = count_evenly(space, values, quantile.bandwidth);
      if (!(counts.width > 0)) {  // one value: any bin around it
        counts.width = quantile.bandwidth;
        counts.first -= 0.5 * counts.width;
      }
      __syncthreads();
      sum_moments(team, counts.bins, space);
      auto& density = space.table.density;
      place_mass(team, counts, negatives, plan.values, quantile, density);
      if (call.table) {
        fill_table(
            team, space.codes, space.grid,
            out.by_value ? Places::of_values(space.grid) : Places::of_bins(space.grid), in,
            static_cast<double>(plan.values), stats,
            [&](double z) { return density_at(density, quantile.bandwidth, z); }, density.codes,
            call.table_of(channel));
      } else {
        pack_density(team, density, quantile.bandwidth, plan.norm, nodes, stats);
      }
    }
  }
  if (threadIdx.x == 0) call.put_stats(channel, stats);
}

}  // namespace qact::core::cuda
