// Short channels: all passes in one kernel, so that a small layer costs one launch. A block has
// one channel in rows, a few neighbours in columns, and a team of threads solves each.
#pragma once

#include "qact/core/cuda/heavy_list.cuh"
#include "qact/core/cuda/share.cuh"
#include "qact/core/cuda/small_call.cuh"

namespace qact::core::cuda {

template <class Limit, int kGroup, int kBlock>
struct SmallSpace {
  using Quick = QuickSpace<Limit, uint32_t, kBlock / kGroup>;
  struct Group {
    Quick quick[kGroup];
    HeavyList heavy[kGroup];
  };
  struct Slow {
    SolveSpace<Limit, kDensityNodes> solve;
    LevelMap<Limit> map;
  };
  union {  // one after the other
    Group group;
    Slow slow;
  };
  double sums[kBlock / kWarp][2 * kGroup];
  uint32_t low[kBlock / kWarp][kGroup], high[kBlock / kWarp][kGroup];
  ChannelPlan plan[kGroup];
  Affine in[kGroup], out[kGroup];
  LayerStats stats[kGroup];  // here, as registers are scarce
  OutNorm norm[kGroup];
  bool quickly[kGroup];
};

// The plans of a block's channels, by the first warp of each team.
template <int kGroup, class Share, class Team, class Space, class T>
__device__ inline void plan_group(const Share& share, const Team& team, const SmallCall<T>& call,
                                  const SolveCall& solve, uint32_t first, Space& space) {
  constexpr int kWarps = Team::kWarps * kGroup;
  float shift[kGroup], sum[kGroup] = {}, square[kGroup] = {}, low[kGroup], high[kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    shift[g] = shift_of(to_float(call.x.data[(first + g) * call.channel_stride]));
    low[g] = INFINITY;
    high[g] = -INFINITY;
  }
  share.for_each([&]<int kSize>(const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      const float x = to_float(pack.v[v]), d = x - shift[g];
      low[g] = fminf(low[g], x);
      high[g] = fmaxf(high[g], x);
      sum[g] += d;
      square[g] += d * d;
    }
  });
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  float own_shift = 0;
  double sums[2 * kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    if (g == team.index) own_shift = shift[g];
    sums[2 * g] = sum[g];
    sums[2 * g + 1] = square[g];
    const uint32_t lowest = __reduce_min_sync(0xffffffffu, order_key(low[g], false));
    const uint32_t highest = __reduce_max_sync(0xffffffffu, order_key(high[g], false));
    if (lane == g) space.low[warp][g] = lowest, space.high[warp][g] = highest;
  }
  const double spread = spread_sum<2 * kGroup>(sums);
  if (lane % (kWarp / (2 * kGroup)) == 0) space.sums[warp][spread_index<2 * kGroup>()] = spread;
  __syncthreads();
  if (team.warp == 0) {
    const int g = team.index;
    Partial all;
    if (lane < kWarps) {
      all.sum = space.sums[lane][2 * g];
      all.square = space.sums[lane][2 * g + 1];
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      all.sum += __shfl_xor_sync(0xffffffffu, all.sum, mask);
      all.square += __shfl_xor_sync(0xffffffffu, all.square, mask);
    }
    const int from = min(lane, kWarps - 1);
    all.low = key_value(__reduce_min_sync(0xffffffffu, space.low[from][g]), false);
    all.high = key_value(__reduce_max_sync(0xffffffffu, space.high[from][g]), false);
    if (lane == 0) {  // what is not finite shows in the sums
      ChannelPlan& plan = space.plan[g];
      plan = make_plan(all, own_shift, call.x.n, solve.norm_in, space.in[g], solve.quantile);
      space.quickly[g] = solves_quickly(plan, solve.quantile);
    }
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
      if (quick[g].level[bin] != kHeavyLevel) continue;
      space.group.heavy[g].add(order_key(x, space.plan[g].norm.scale < 0), bin);
    }
  });
  __syncthreads();
  const int own = team.index;
  rank_heavy(team, space.plan[own], solve.quantile, quick[own], space.group.heavy[own]);
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
    int k[kSize];
    bool rare = false;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      k[v] = space.group.quick[g].level[bin_of(to_float(pack.v[v]), map[g])];
      rare |= k[v] == kHeavyLevel;
    }
    if (rare) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const int g = v % kGroup;
        const uint32_t key = order_key(to_float(pack.v[v]), space.plan[g].norm.scale < 0);
        if (k[v] == kHeavyLevel) k[v] = space.group.heavy[g].level_of(key);
      }
    }
    Pack<T, kSize> y;
    Pack<uint8_t, kSize> level;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const OutNorm& norm = space.norm[v % kGroup];
      y.v[v] = from_float<T>(k[v] * norm.scale + norm.shift);
      level.v[v] = static_cast<uint8_t>(k[v]);
    }
    *reinterpret_cast<Pack<T, kSize>*>(&call.y.at(first, i)) = y;
    *reinterpret_cast<Pack<uint8_t, kSize>*>(&call.level.at(first, i)) = level;
  });
}

// Any channel, by the whole block.
template <class T, class Slow, int kBlock>
__device__ __noinline__ void solve_slowly(const SmallCall<T>& call, const SolveCall& solve,
                                          uint32_t channel, const ChannelPlan& plan, Slow& space) {
  Values<T> values = call.x;
  values.data += channel * call.channel_stride;
  if (threadIdx.x == 0) space.solve.plan = plan;
  uint32_t* counts = space.solve.before;
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
  __syncthreads();
  const auto& map = space.map;
  for (uint32_t i = threadIdx.x; i < values.n; i += kBlock) {
    const float x = values[i];
    const int k = map.how == kNotFinite
                      ? 0
                      : level_of(x, map, map.level, map.threshold, solve.quantile.levels);
    write_value(call, solve, channel, i, x, k, map.norm);
  }
}

template <class T, class Limit, int kSize, int kGroup, int kBlock, int kPacks>
__global__ void __launch_bounds__(kBlock, 1024 / kBlock)
    forward_small(const __grid_constant__ SmallCall<T> call,
                  const __grid_constant__ SolveCall solve) {
  static_assert(kGroup == 1 || kGroup == kSize);
  constexpr int kRun = kGroup == 1 ? kSize : 1;
  using Space = SmallSpace<Limit, kGroup, kBlock>;
  extern __shared__ __align__(32) unsigned char memory[];
  Space& space = *reinterpret_cast<Space*>(memory);
  auto& quick = space.group.quick;
  const Team<kBlock / kGroup> team;
  const int own = team.index;
  const uint32_t first = blockIdx.x * kGroup;
  Values<T> values = call.x;
  values.data += first * call.channel_stride;
  const auto load_pack = [values](uint32_t i) { return load<kSize>(values.at(i)); };
  const auto share = share_of<kRun, kBlock, kPacks>(values.n, load_pack);
#pragma unroll
  for (int i = 0; i < Space::Quick::kBinsEach; ++i) {
    quick[own].before[team.thread + i * team.kThreads] = 0;
  }
  if (team.thread == 0) {  // what is read now is not waited for later
    space.group.heavy[own].count = 0;
    space.in[own] = solve.norm_in.of(first + own);
    space.out[own] = solve.affine_out(first + own);
  }
  plan_group<kGroup>(share, team, call, solve, first, space);

  bool quickly = true;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) quickly &= space.quickly[g];
  if (quickly) {
    BinMap<float> map[kGroup];
#pragma unroll
    for (int g = 0; g < kGroup; ++g) map[g] = space.plan[g].bins.map;
    share.for_each([&](const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const int g = v % kGroup;
        atomicAdd(&quick[g].before[bin_of(to_float(pack.v[v]), map[g])], 1u);
      }
    });
    __syncthreads();
    settle_quickly(team, space.plan[own].bins, values.n, solve.quantile, quick[own]);
    if (team.thread == 0) settle_norm(solve, own, space);
    __syncthreads();
    rank_group<kGroup>(share, team, solve, map, space);
    write_group<kGroup>(share, call, first, map, space);
    finish_quickly(team, solve, space.plan[own], first + own, quick[own], space.stats[own]);
  }
#pragma unroll 1
  for (int g = 0; g < kGroup; ++g) {  // all, if one of them has no bins; else those left open
    if (quickly && space.quickly[g]) continue;
    __syncthreads();
    solve_slowly<T, typename Space::Slow, kBlock>(call, solve, first + g, space.plan[g],
                                                  space.slow);
  }
}

}  // namespace qact::core::cuda
