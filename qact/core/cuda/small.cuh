// Short channels: all passes in one kernel, so that a small layer costs one launch. A block has
// one channel in rows, a few neighbours in columns, and a team of threads solves each.
#pragma once

#include "qact/core/cuda/quick.cuh"
#include "qact/core/cuda/share.cuh"
#include "qact/core/cuda/small_call.cuh"

namespace qact::core::cuda {

// The values in a channel's heavy bins, in no order: what is counted does not depend on it.
struct HeavyList {
  uint32_t count;
  uint32_t key[kFewHeavy];
  uint16_t bin[kFewHeavy];
  uint8_t level[kFewHeavy];

  __device__ void add(uint32_t of, int at) {
    const uint32_t place = atomicAdd(&count, 1u);
    key[place] = of;
    bin[place] = static_cast<uint16_t>(at);
  }
  __device__ int level_of(uint32_t of) const {
    for (uint32_t j = 0; j < count; ++j) {
      if (key[j] == of) return level[j];
    }
    return 0;
  }
};

// The levels of a list's values, added to the totals.
template <class Team, class Space>
__device__ inline void rank_heavy(const Team& team, const ChannelPlan& plan,
                                  const Quantile& quantile, Space& space, HeavyList& list) {
  const int64_t negatives = space.totals.negatives;
  const LevelRule rule(quantile, negatives, plan.values - negatives);
  for (uint32_t e = team.thread; e < list.count; e += Team::kThreads) {
    const uint32_t key = list.key[e];
    const int bin = list.bin[e];
    const bool positive = bin >= plan.bins.split;
    int64_t rank = space.before[bin] - (positive ? negatives : 0);
    rank += plan.bins.centre(bin) >= (positive ? quantile.bound : -quantile.bound);
    for (uint32_t j = 0; j < list.count; ++j) rank += list.bin[j] == bin && list.key[j] <= key;
    const uint32_t level = static_cast<uint32_t>(rule.level(positive, rank));
    list.level[e] = static_cast<uint8_t>(level);
    atomicAdd(&space.totals.sum, level);
    atomicAdd(&space.totals.square, level * level);
  }
}

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
  double sums[2 * kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    sums[2 * g] = sum[g];
    sums[2 * g + 1] = square[g];
    const uint32_t lowest = __reduce_min_sync(0xffffffffu, order_key(low[g], false));
    const uint32_t highest = __reduce_max_sync(0xffffffffu, order_key(high[g], false));
    if (lane == g) space.low[warp][g] = lowest, space.high[warp][g] = highest;
  }
  const double own = spread_sum<2 * kGroup>(sums);
  if (lane % (kWarp / (2 * kGroup)) == 0) space.sums[warp][spread_index<2 * kGroup>()] = own;
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
      plan = make_plan(all, shift_of(to_float(call.x.data[(first + g) * call.channel_stride])),
                       call.x.n, first + g, solve.norm_in, solve.quantile);
      space.quickly[g] = solves_quickly(plan, solve.quantile);
    }
  }
  __syncthreads();
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
  using Space = SmallSpace<Limit, kGroup, kBlock>;
  extern __shared__ __align__(32) unsigned char memory[];
  Space& space = *reinterpret_cast<Space*>(memory);
  auto& quick = space.group.quick;
  auto& heavy = space.group.heavy;
  const Team<kBlock / kGroup, kGroup> team;
  const int own = team.index;
  const uint32_t first = blockIdx.x * kGroup;
  Values<T> values = call.x;
  values.data += first * call.channel_stride;
  constexpr int kRun = kGroup == 1 ? kSize : 1;
  const auto share = share_of<kRun, kBlock, kPacks>(
      values.n, [values](uint32_t i) { return load<kSize>(values.at(i)); });
#pragma unroll
  for (int i = 0; i < Space::Quick::kBinsEach; ++i) {
    quick[own].before[team.thread + i * team.kThreads] = 0;
  }
  if (team.thread == 0) heavy[own].count = 0;
  plan_group<kGroup>(share, team, call, solve, first, space);

  BinMap<float> map[kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {  // the others' values go to the first bin, for now
    if (space.quickly[g]) map[g] = space.plan[g].bins.map;
  }
  share.for_each([&](const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      atomicAdd(&quick[g].before[bin_of(to_float(pack.v[v]), map[g])], 1u);
    }
  });
  __syncthreads();

  const ChannelPlan& plan = space.plan[own];
  auto& totals = quick[own].totals;
  LayerStats stats;  // of the team's first thread
  const auto settle_norm = [&] {
    stats = norm_stats(solve, plan, totals.sum, totals.square);
    space.norm[own] = OutNorm(solve, first + own, stats);
  };
  if (space.quickly[own]) {
    settle_quickly(team, plan.bins, values.n, solve.quantile, quick[own]);
    if (team.thread == 0) settle_norm();
  } else if (team.thread == 0) {
    totals.heavy = 0;
  }
  __syncthreads();
  bool some = false;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) some |= quick[g].totals.heavy > 0;
  if (some) {
    share.for_each([&](const Pack<T, kSize>& pack, uint32_t) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const int g = v % kGroup;
        const float x = to_float(pack.v[v]);
        const int bin = bin_of(x, map[g]);
        if (quick[g].totals.heavy == 0 || quick[g].totals.heavy > kFewHeavy) continue;
        if (quick[g].level[bin] != kHeavyLevel) continue;
        heavy[g].add(order_key(x, space.plan[g].norm.scale < 0), bin);
      }
    });
    __syncthreads();
    if (totals.heavy > 0) {
      rank_heavy(team, plan, solve.quantile, quick[own], heavy[own]);
      team.sync();
      if (team.thread == 0) {
        settle_norm();
        space.quickly[own] = totals.heavy <= kFewHeavy;
      }
    }
    __syncthreads();
  }

  share.for_each([&](const Pack<T, kSize>& pack, uint32_t i) {
    int k[kSize];
    bool rare = false;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      k[v] = quick[v % kGroup].level[bin_of(to_float(pack.v[v]), map[v % kGroup])];
      rare |= k[v] == kHeavyLevel;
    }
    if (rare) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const int g = v % kGroup;
        const uint32_t key = order_key(to_float(pack.v[v]), space.plan[g].norm.scale < 0);
        if (k[v] == kHeavyLevel) k[v] = heavy[g].level_of(key);
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
  if (space.quickly[own]) finish_quickly(team, solve, plan, first + own, quick[own], stats);
#pragma unroll 1
  for (int g = 0; g < kGroup; ++g) {
    if (space.quickly[g]) continue;
    __syncthreads();
    solve_slowly<T, typename Space::Slow, kBlock>(call, solve, first + g, space.plan[g],
                                                  space.slow);
  }
}

}  // namespace qact::core::cuda
