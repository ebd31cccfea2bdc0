// The passes of the forward direction: summarise, count, solve, write. The fused layer and
// the plain operator share them. Those over columns are in forward_columns.cuh.
#pragma once

#include <type_traits>

#include "qact/core/cuda/chain.cuh"
#include "qact/core/cuda/solve.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kThreads = 512;

// Where a part's histogram lies: 16-bit counts, two to a word.
struct PartCounts {
  uint32_t* words;
  uint32_t per_part;  // words, a multiple of four
  uint32_t parts;

  __device__ uint32_t* of(uint32_t channel, uint32_t part) const {
    return words + (static_cast<int64_t>(channel) * parts + part) * per_part;
  }
  // From counts in whole words, by `threads` of a block, of which this is one.
  __device__ void put(const uint32_t* bins, uint32_t channel, uint32_t part, uint32_t thread,
                      uint32_t threads) const {
    const uint4* from = reinterpret_cast<const uint4*>(bins);
    uint4* to = reinterpret_cast<uint4*>(of(channel, part));
    for (uint32_t i = thread; i < per_part / 4; i += threads) {
      const uint4 a = from[2 * i], b = from[2 * i + 1];
      to[i] = {a.x | a.y << 16, a.z | a.w << 16, b.x | b.y << 16, b.z | b.w << 16};
    }
  }
};

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads)
    summarise_rows(const T* x, Layout layout, Extent extent, Partial* parts) {
  __shared__ Room<Partial, kThreads / kWarp> shared_room;
  Partial* const shared = shared_room.array();
  let_next_start();
  const uint32_t channel = blockIdx.y, part = blockIdx.x;
  const T* values = x + layout.start(channel);
  const float shift = shift_of(to_float(values[0]));
  Partial all;
  for_each_pack<kSize>(extent, part, [&](uint32_t image, uint32_t place, uint32_t) {
    const auto pack = load<kSize>(values + image * layout.batch_stride + place);
    float v[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) v[i] = to_float(pack.v[i]);
    all.add(v, shift);
  });
  all = merge_columns<1>(all, shared);
  if (threadIdx.x == 0) parts[channel * extent.parts + part] = all;
}

// The summaries of a channel: where the parts lie and how many there are.
struct Summaries {
  Partial* parts;
  uint32_t count;
  ChannelPlan* plans;
};

// By one warp; lane 0 makes the plan.
__device__ inline void plan_channel(const Summaries& from, float first, uint32_t n,
                                    uint32_t channel, const NormIn& norm_in,
                                    const Quantile& quantile, ChannelPlan& plan) {
  const Partial all =
      merge_parts(from.parts + static_cast<int64_t>(channel) * from.count, from.count);
  if (threadIdx.x % kWarp == 0) {
    plan = make_plan(all, shift_of(first), n, norm_in, norm_in.of(channel), quantile);
  }
}

__device__ inline void clear_words(uint32_t* words, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count / 4; i += blockDim.x) {
    reinterpret_cast<uint4*>(words)[i] = {0, 0, 0, 0};
  }
}

// By `threads` of a block, of which this is one.
__device__ inline void copy_words(const uint32_t* from, uint32_t count, uint32_t* to,
                                  uint32_t thread, uint32_t threads) {
  for (uint32_t i = thread; i < count / 4; i += threads) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
}

inline constexpr int kCountBlocks = 4;  // on a multiprocessor

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, kCountBlocks)
    count_rows(const T* x, Layout layout, Extent extent, Summaries summaries, NormIn norm_in,
               Quantile quantile, PartCounts counts) {
  extern __shared__ __align__(16) uint32_t bins[];  // counting by one is fastest in whole words
  __shared__ Room<ChannelPlan> plan_room;
  ChannelPlan& plan = plan_room.value();
  const uint32_t channel = blockIdx.y, part = blockIdx.x;
  const T* values = x + layout.start(channel);
  clear_words(bins, counts.per_part * 2);
  wait_for_previous();
  let_next_start();
  if (threadIdx.x < kWarp) {
    plan_channel(summaries, to_float(values[0]), extent.n, channel, norm_in, quantile, plan);
  }
  __syncthreads();
  if (part == 0 && threadIdx.x == 0) summaries.plans[channel] = plan;
  if (plan.how != kBinned) return;
  const BinMap<float> map = plan.bins.map;
  for_each_pack<kSize>(extent, part, [&](uint32_t image, uint32_t place, uint32_t) {
    const auto pack = load<kSize>(values + image * layout.batch_stride + place);
#pragma unroll
    for (int i = 0; i < kSize; ++i) atomicAdd(&bins[bin_of(to_float(pack.v[i]), map)], 1u);
  });
  if (!QACT_MUTANT("cuda_count_sync")) __syncthreads();
  counts.put(bins, channel, part, threadIdx.x, blockDim.x);
}

// The maps that the passes hand on.
using PassMap = LevelMap<Long>;

// The sum of a channel's histograms, eight counts at a time; slots past the last bin are 0. A
// thread asks for all of its words of some parts at once.
template <int kSlots, int kBlock>
__device__ inline void merge_counts(const PartCounts& counts, uint32_t channel, uint32_t* sums) {
  constexpr uint32_t kCounts = 8, kPacks = (kSlots / kCounts + kBlock - 1) / kBlock;
  Pack<uint32_t, kCounts> sum[kPacks] = {};
#pragma unroll 8
  for (uint32_t part = 0; part < counts.parts; ++part) {
#pragma unroll
    for (uint32_t p = 0; p < kPacks; ++p) {
      const uint32_t i = threadIdx.x + p * kBlock;
      if (i >= counts.per_part / (kCounts / 2)) continue;
      const auto words = load<kCounts / 2>(counts.of(channel, part) + i * (kCounts / 2));
#pragma unroll
      for (uint32_t w = 0; w < kCounts / 2; ++w) {
        sum[p].v[2 * w] += words.v[w] & 0xffff;
        sum[p].v[2 * w + 1] += words.v[w] >> 16;
      }
    }
  }
#pragma unroll
  for (uint32_t p = 0; p < kPacks; ++p) {
    const uint32_t i = threadIdx.x + p * kBlock;
    if (i < kSlots / kCounts) reinterpret_cast<Pack<uint32_t, kCounts>*>(sums)[i] = sum[p];
  }
  __syncthreads();
}

template <class Limit, int kBlock>
union PassSpace {  // one after the other
  using Count = std::conditional_t<Limit::kValues == 0, unsigned long long, uint32_t>;
  QuickSpace<Limit, Count, kBlock> quick;
  SolveSpace<Limit> slow;
};

// Whether bins told all levels.
template <class Team, class Space>
__device__ inline bool solve_quickly(const Team& team, const SolveCall& call,
                                     const ChannelPlan& plan, const PartCounts& counts, uint32_t n,
                                     uint32_t channel, Space& space, PassMap& out) {
  const Affine in = call.norm_in.of(channel);
  merge_counts<Space::kSlots, Team::kThreads>(counts, channel, space.before);
  settle_quickly(team, call, plan, in.weight, n, space);
  __syncthreads();
  if (space.totals.heavy > 0) return false;
  LayerStats stats;
  if (threadIdx.x == 0) {
    stats = norm_stats(call, plan, static_cast<double>(space.totals.sum),
                       static_cast<double>(space.totals.square));
    out.map = plan.bins.map;
    out.how = kBinned;
    out.roots = 0;
    out.by_value = false;
    out.norm = OutNorm(call, call.affine_out(channel), stats);
  }
  copy_words(reinterpret_cast<const uint32_t*>(space.code), Space::kBins / 4,
             reinterpret_cast<uint32_t*>(out.code), threadIdx.x, Team::kThreads);
  for (int c = threadIdx.x; c < kCodes; c += Team::kThreads) {
    out.level[c] = static_cast<uint8_t>(space.codes.level[c]);
  }
  finish_quickly(team, call, plan, in, channel, NoTies(), space, stats);
  return true;
}

template <class T, class Limit, int kBlock>
__global__ void __launch_bounds__(kBlock, 1024 / kBlock)
    solve(Values<T> all, const ChannelPlan* plans, PartCounts counts, SolveCall call,
          PassMap* maps) {
  extern __shared__ __align__(32) unsigned char memory[];
  auto& space = *reinterpret_cast<PassSpace<Limit, kBlock>*>(memory);
  __shared__ Room<ChannelPlan> plan_room;
  ChannelPlan& plan = plan_room.value();
  const Team<kBlock> team;
  const uint32_t channel = blockIdx.x;
  wait_for_previous();
  let_next_start();
  constexpr uint32_t kPlanWords = sizeof(ChannelPlan) / sizeof(uint32_t);
  if (threadIdx.x < kPlanWords) {
    reinterpret_cast<uint32_t*>(&plan)[threadIdx.x] =
        reinterpret_cast<const uint32_t*>(plans + channel)[threadIdx.x];
  }
  __syncthreads();
  const Values<T> values = all.of(channel);
  if (plan.again) {
    plan_again(values, call, channel, reinterpret_cast<Partial*>(memory), plan);
    // It was counted by other bins.
    if (threadIdx.x == 0 && plan.how == kBinned && plan.bins.bins > 1) plan.how = kExact;
    __syncthreads();
  }
  if (call.norm_in.present && solves_quickly(plan, call.quantile)) {
    if (solve_quickly(team, call, plan, counts, values.n, channel, space.quick, maps[channel])) {
      return;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) space.slow.plan = plan;
  if (plan.how == kBinned) {
    merge_counts<Limit::kBins, kBlock>(counts, channel, space.slow.before);
    scan_array(space.slow.before, plan.bins.bins + 1, space.slow.refine.scan);
  }
  __syncthreads();
  solve_channel(team, call, values, channel, space.slow, maps[channel]);
}

// The codes by bin of one channel, if it has bins, and after them the levels by code, by `count`
// threads.
__device__ inline void load_codes(const PassMap& map, uint32_t words, uint32_t* table,
                                  uint32_t thread, uint32_t count) {
  if (map.how != kBinned) return;
  copy_words(reinterpret_cast<const uint32_t*>(map.code), words, table, thread, count);
  copy_words(reinterpret_cast<const uint32_t*>(map.level), kCodes / 4, table + words, thread,
             count);
}

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 3)
    write_rows(const T* x, Layout layout, T* y, Layout y_layout, uint8_t* code, Extent extent,
               const PassMap* maps, int levels, int words) {
  __shared__ __align__(16) uint32_t table[(Long::kBins + kCodes) / 4];
  __shared__ uint32_t threshold[Long::kLevels + 1];
  const uint32_t channel = blockIdx.y;
  const PassMap& map = maps[channel];
  wait_for_previous();
  const bool exact = map.how == kExact;
  load_codes(map, words, table, threadIdx.x, blockDim.x);
  if (exact) {
    for (int i = threadIdx.x; i <= levels; i += blockDim.x) threshold[i] = map.threshold[i];
  }
  __syncthreads();
  const uint8_t* by_bin = reinterpret_cast<const uint8_t*>(table);
  const uint8_t* by_code = reinterpret_cast<const uint8_t*>(table + words);
  const BinMap<float> bins = map.map;
  const float scale = map.norm.scale, shift = map.norm.shift;
  const bool simple = map.simple();
  for_each_pack<kSize>(extent, blockIdx.x, [&](uint32_t image, uint32_t place, uint32_t index) {
    const auto pack = load<kSize>(x + row_offset(layout, channel, image, place));
    Pack<T, kSize> out;
    Pack<uint8_t, kSize> out_code;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float v = to_float(pack.v[i]);
      Found found;
      if (simple) {
        found.code = by_bin[bin_of(v, bins)];
        found.level = by_code[found.code];
      } else {
        found = find_code(v, map, by_bin, threshold, levels);
      }
      out.v[i] = from_float<T>(found.level * scale + shift);
      out_code.v[i] = static_cast<uint8_t>(found.code);
    }
    *reinterpret_cast<Pack<T, kSize>*>(y + row_offset(y_layout, channel, image, place)) = out;
    if (!code) return;
    *reinterpret_cast<Pack<uint8_t, kSize>*>(code + static_cast<int64_t>(channel) * extent.n +
                                             index) = out_code;
  });
}

}  // namespace qact::core::cuda
