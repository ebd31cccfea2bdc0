// Short channels: all passes in one kernel, so that a small layer costs one launch. A block has
// one channel in rows, a few neighbours in columns, and a team of threads solves each. A longer
// channel in rows has a cluster of blocks, which all settle it alike.
#pragma once

#include "qact/core/cuda/cluster.cuh"
#include "qact/core/cuda/group_sums.cuh"
#include "qact/core/cuda/heavy_list.cuh"
#include "qact/core/cuda/share.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <class Limit, int kGroup, int kBlock, int kBlocks>
struct SmallSpace {
  using Quick = QuickSpace<Limit, uint32_t, kBlock / kGroup>;
  struct Group {
    Quick quick[kGroup];
    HeavyList heavy[kGroup];
    uint32_t counts[kBlocks > 1 ? Quick::kSlots : 1];  // of one block in a cluster
  };
  struct Slow {
    SolveSpace<Limit> solve;
    LevelMap<Limit> map;
  };
  union {  // one after the other
    Group group;
    Slow slow;
  };
  GroupSums<kGroup, kBlock> sums;
  Partial parts[kBlocks];  // of each block in a cluster
  ChannelPlan plan[kGroup];
  Affine in[kGroup], out[kGroup];
  LayerStats stats[kGroup];  // here, as registers are scarce
  OutNorm norm[kGroup];
  bool quickly[kGroup];
};

// What all blocks of a cluster have of its channel, given what the first threads of each have.
template <int kBlocks, class Space>
__device__ inline Partial merge_cluster(const Partial& own, Space& space) {
  using Blocks = Cluster<kBlocks>;
  const int lane = threadIdx.x % kWarp;
  if (lane < kBlocks && threadIdx.x < kWarp) *Blocks::in(lane, &space.parts[Blocks::rank()]) = own;
  Blocks::sync();
  Partial all = space.parts[0];
  for (int k = 1; k < kBlocks; ++k) all = Partial::merge(all, space.parts[k]);
  return all;
}

// The plans of a block's channels, by the first warp of each team.
template <int kGroup, int kBlocks, class Share, class Team, class Space, class T>
__device__ inline void plan_group(const Share& share, const Team& team, const SmallCall<T>& call,
                                  const SolveCall& solve, uint32_t first, Space& space) {
  sum_group(share, call, first, space.sums);
  Partial all;
  if (team.warp == 0) all = space.sums.of(team.index);
  if constexpr (kBlocks > 1) {
    Cluster<kBlocks>::wait();
    all = merge_cluster<kBlocks>(all, space);
  }
  if (team.thread == 0) {
    const int g = team.index;
    ChannelPlan& plan = space.plan[g];
    plan =
        make_plan(all, space.sums.shift[g], call.x.n, solve.norm_in, space.in[g], solve.quantile);
    space.quickly[g] = solves_quickly(plan, solve.quantile);
  }
  __syncthreads();
}

// By a team's first thread.
template <class Space>
__device__ inline void settle_norm(const SolveCall& solve, int g, Space& space) {
  const auto& totals = space.group.quick[g].totals;
  space.stats[g] = norm_stats(solve, space.plan[g], totals.sum, totals.square);
  space.norm[g] = OutNorm(solve, space.out[g], space.stats[g]);
}

// The values in heavy bins get their levels, if they are few, and the norm is settled anew.
template <int kGroup, class Share, class Team, class Space>
__device__ inline void rank_group(const Share& share, const Team& team, const SolveCall& solve,
                                  const BinMap<float> (&map)[kGroup], Space& space) {
  auto& quick = space.group.quick;
  bool some = false;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) some |= quick[g].totals.heavy > 0;
  if (!some) return;
  share.for_each([&]<class T, int kSize>(const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      if (quick[g].totals.heavy == 0 || quick[g].totals.heavy > kFewHeavy) continue;
      const float x = to_float(pack.v[v]);
      const int bin = bin_of(x, map[g]);
      if (quick[g].code[bin] != kHeavyBin) continue;
      space.group.heavy[g].add(order_key(x, space.plan[g].norm.scale < 0), bin);
    }
  });
  __syncthreads();
  const int own = team.index;
  rank_heavy(team, space.plan[own], solve.quantile, solve.context != nullptr, quick[own],
             space.group.heavy[own]);
  __syncthreads();
  if (team.thread == 0) {
    settle_norm(solve, own, space);
    space.quickly[own] = quick[own].totals.heavy <= kFewHeavy;
  }
  __syncthreads();
}

template <int kGroup, class Share, class Space, class T>
__device__ inline void write_group(const Share& share, const SmallCall<T>& call, uint32_t first,
                                   const BinMap<float> (&map)[kGroup], const Space& space) {
  share.for_each([&]<int kSize>(const Pack<T, kSize>& pack, uint32_t i) {
    int found[kSize];
    bool rare = false;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      found[v] = space.group.quick[g].code[bin_of(to_float(pack.v[v]), map[g])];
      rare |= found[v] == kHeavyBin;
    }
    if (rare) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const int g = v % kGroup;
        const uint32_t key = order_key(to_float(pack.v[v]), space.plan[g].norm.scale < 0);
        if (found[v] == kHeavyBin) found[v] = space.group.heavy[g].code_of(key);
      }
    }
    Pack<T, kSize> y;
    Pack<uint8_t, kSize> code;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const OutNorm& norm = space.norm[v % kGroup];
      const uint32_t k = space.group.quick[v % kGroup].codes.level[found[v]];
      y.v[v] = from_float<T>(k * norm.scale + norm.shift);
      code.v[v] = static_cast<uint8_t>(found[v]);
    }
    *reinterpret_cast<Pack<T, kSize>*>(&call.y.at(first, i)) = y;
    if (call.code.data) *reinterpret_cast<Pack<uint8_t, kSize>*>(&call.code.at(first, i)) = code;
  });
}

// Any channel: settled by one block, which gives the others of a cluster its map.
template <int kBlocks, int kBlock, class T, class Slow>
__device__ __noinline__ void solve_slowly(const SmallCall<T>& call, const SolveCall& solve,
                                          uint32_t channel, const ChannelPlan& planned, Range range,
                                          Slow& space) {
  using Blocks = Cluster<kBlocks>;
  const Values<T> values = call.x.of(channel);
  if (Blocks::rank() == 0) {
    if (threadIdx.x == 0) space.solve.plan = planned;
    __syncthreads();
    uint32_t* counts = space.solve.before;
    const ChannelPlan& plan = space.solve.plan;
    if (planned.again && !QACT_MUTANT("cuda_small_again")) {
      plan_again(values, solve, channel, reinterpret_cast<Partial*>(counts), space.solve.plan);
    }
    if (plan.how == kBinned) {
      for (int i = threadIdx.x; i <= plan.bins.bins; i += kBlock) counts[i] = 0;
      __syncthreads();
      const BinMap<float> map = plan.bins.map;
      for (uint32_t i = threadIdx.x; i < values.n; i += kBlock) {
        atomicAdd(&counts[bin_of(values[i], map)], 1u);
      }
      __syncthreads();
      scan_array(counts, plan.bins.bins + 1, space.solve.refine.scan);
    }
    __syncthreads();
    solve_channel(Team<kBlock>(), solve, values, channel, space.solve, space.map);
  }
  Blocks::sync();
  if (Blocks::rank() > 0) {
    const uint32_t* from = reinterpret_cast<const uint32_t*>(Blocks::in(0, &space.map));
    uint32_t* to = reinterpret_cast<uint32_t*>(&space.map);
    for (int i = threadIdx.x; i < sizeof(space.map) / sizeof(uint32_t); i += kBlock)
      to[i] = from[i];
  }
  Blocks::sync();
  const auto& map = space.map;
  for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += kBlock) {
    const float x = values[i];
    const Found found = find_code(x, map, map.code, map.threshold, solve.quantile.levels);
    write_value(call, solve, channel, i, x, found, map.norm);
  }
}

// The values of the block's share by bin; in a cluster, of all shares.
template <int kGroup, int kBlocks, class Share, class Team, class Space>
__device__ inline void count_group(const Share& share, const Team& team,
                                   const BinMap<float> (&map)[kGroup], Space& space) {
  auto& quick = space.group.quick;
  share.for_each([&]<class T, int kSize>(const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      const int bin = bin_of(to_float(pack.v[v]), map[g]);
      atomicAdd(kBlocks > 1 ? &space.group.counts[bin] : &quick[g].before[bin], 1u);
    }
  });
  Cluster<kBlocks>::sync();
  if constexpr (kBlocks > 1) {
#pragma unroll
    for (int i = 0; i < Space::Quick::kBinsEach; ++i) {
      const int bin = team.thread + i * team.kThreads;
      uint32_t count = 0;
#pragma unroll
      for (int k = 0; k < kBlocks; ++k) count += *Cluster<kBlocks>::in(k, &space.group.counts[bin]);
      quick[0].before[bin] = count;
    }
    __syncthreads();
  }
}

template <class T, class Limit, int kSize, int kGroup, int kBlock, int kPacks, int kBlocks>
__global__ void __launch_bounds__(kBlock, 1024 / kBlock)
    forward_small(const __grid_constant__ SmallCall<T> call,
                  const __grid_constant__ SolveCall solve) {
  static_assert(kGroup == 1 || (kGroup == kSize && kBlocks == 1));
  constexpr int kRun = kGroup == 1 ? kSize : 1;
  using Space = SmallSpace<Limit, kGroup, kBlock, kBlocks>;
  using Blocks = Cluster<kBlocks>;
  extern __shared__ __align__(32) unsigned char memory[];
  Space& space = *reinterpret_cast<Space*>(memory);
  auto& quick = space.group.quick;
  Blocks::arrive();
  const Team<kBlock / kGroup> team;
  const int own = team.index;
  const uint32_t rank = Blocks::rank(), first = blockIdx.x / kBlocks * kGroup;
  const Values<T> values = call.x.of(first);
  const auto load_pack = [values](uint32_t i) { return load<kSize>(values.at(i)); };
  const Range range = range_of<kBlocks, kRun>(values.n, rank);
  const auto share = share_of<kRun, kBlock, kPacks>(range.begin, range.end, load_pack);
#pragma unroll
  for (int i = 0; i < Space::Quick::kBinsEach; ++i) {
    const int bin = team.thread + i * team.kThreads;
    (kBlocks > 1 ? space.group.counts : quick[own].before)[bin] = 0;
  }
  if (team.thread == 0) {  // what is read now is not waited for later
    space.group.heavy[own].clear();
    space.in[own] = solve.norm_in.of(first + own);
    space.out[own] = solve.affine_out(first + own);
  }
  plan_group<kGroup, kBlocks>(share, team, call, solve, first, space);

  bool quickly = true;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) quickly &= space.quickly[g];
  if (quickly) {
    BinMap<float> map[kGroup];
#pragma unroll
    for (int g = 0; g < kGroup; ++g) map[g] = space.plan[g].bins.map;
    count_group<kGroup, kBlocks>(share, team, map, space);
    settle_quickly(team, solve, space.plan[own], space.in[own].weight, values.n, quick[own]);
    if (team.thread == 0) settle_norm(solve, own, space);
    __syncthreads();
    if constexpr (kBlocks == 1) {
      rank_group<kGroup>(share, team, solve, map, space);
    } else if (threadIdx.x == 0) {
      space.quickly[0] = quick[0].totals.heavy == 0;
    }
    write_group<kGroup>(share, call, first, map, space);
    if (rank == 0) {
      finish_quickly(team, solve, space.plan[own], space.in[own], first + own,
                     space.group.heavy[own].ties, quick[own], space.stats[own]);
    }
    Blocks::sync();  // before a block ends, others need no more of it
  }
#pragma unroll 1
  for (int g = 0; g < kGroup; ++g) {  // all, if one of them has no bins; else those left open
    if (quickly && space.quickly[g]) continue;
    solve_slowly<kBlocks, kBlock>(call, solve, first + g, space.plan[g], range, space.slow);
    __syncthreads();
  }
}

}  // namespace qact::core::cuda
