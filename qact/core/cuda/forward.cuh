// The passes of the forward direction over the tensor. The fused layer and the plain
// operator share them: summarise, count, solve, write.
#pragma once

#include "qact/core/cuda/solve.cuh"

namespace qact::core::cuda {

inline constexpr int kThreads = 512;

// Where a part's histogram lies: 16-bit counts, two to a word.
struct PartCounts {
  uint32_t* words;
  uint32_t per_part;  // words
  uint32_t parts;

  __device__ uint32_t* of(uint32_t channel, uint32_t part) const {
    return words + (static_cast<int64_t>(channel) * parts + part) * per_part;
  }
};

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads)
    summarise_rows(const T* x, Layout layout, Extent extent, Partial* parts) {
  __shared__ Room<Partial, kThreads / kWarp> shared_room;
  Partial* const shared = shared_room.array();
  const uint32_t channel = blockIdx.y, part = blockIdx.x;
  const T* values = x + channel * layout.channel_stride;
  const float shift = shift_of(to_float(values[0]));
  Partial all;
  for_each_pack<kSize>(extent, part, [&](uint32_t image, uint32_t place, uint32_t) {
    const auto pack = load<kSize>(values + image * layout.batch_stride + place);
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float v = to_float(pack.v[i]), d = v - shift;
      all.low = fminf(all.low, v);
      all.high = fmaxf(all.high, v);
      all.nans += isnan(v);
      all.infinite += isinf(v);
      sum += d;
      square += d * d;
    }
    all.sum += sum;
    all.square += square;
  });
  all = merge_columns<1>(all, shared);
  if (threadIdx.x == 0) parts[channel * extent.parts + part] = all;
}

template <class T, int kGroup, int kSize>
__global__ void __launch_bounds__(kThreads)
    summarise_columns(const T* x, Layout layout, Extent extent, Partial* parts) {
  using Columns = Column<kGroup, kSize>;
  __shared__ Room<Partial, kThreads / kWarp * Columns::kLanes> shared_room;
  Partial* const shared = shared_room.array();
  const Columns column(blockIdx.x);
  Partial all[kSize];
  float shift[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    shift[i] = column.channel < extent.channels ? shift_of(to_float(x[column.channel + i])) : 0;
  }
  column.for_each_place(extent, blockIdx.y, [&](uint32_t place) {
    const auto pack = load<kSize>(x + place * layout.row_stride + column.channel);
#pragma unroll
    for (int i = 0; i < kSize; ++i) all[i].add(to_float(pack.v[i]), to_float(pack.v[i]) - shift[i]);
  });
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const Partial merged = merge_columns<Columns::kLanes>(all[i], shared);
    const uint32_t channel = blockIdx.x * kGroup + threadIdx.x * kSize + i;
    if (threadIdx.x < Columns::kLanes && channel < extent.channels) {
      parts[channel * extent.parts + blockIdx.y] = merged;
    }
  }
}

// The summaries of a channel: where the parts lie and how many there are.
struct Summaries {
  const Partial* parts;
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
    plan = make_plan(all, shift_of(first), n, channel, norm_in, quantile);
  }
}

__device__ inline void count_bin(uint32_t* words, int bin) {
  atomicAdd(&words[bin / 2], 1u << (bin % 2 * 16));
}

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 3)
    count_rows(const T* x, Layout layout, Extent extent, Summaries summaries, NormIn norm_in,
               Quantile quantile, PartCounts counts) {
  extern __shared__ uint32_t words[];
  __shared__ Room<ChannelPlan> plan_room;
  ChannelPlan& plan = plan_room.value();
  const uint32_t channel = blockIdx.y, part = blockIdx.x;
  const T* values = x + channel * layout.channel_stride;
  if (threadIdx.x < kWarp) {
    plan_channel(summaries, to_float(values[0]), extent.n, channel, norm_in, quantile, plan);
  }
  for (uint32_t i = threadIdx.x; i < counts.per_part; i += blockDim.x) words[i] = 0;
  __syncthreads();
  if (part == 0 && threadIdx.x == 0) summaries.plans[channel] = plan;
  if (plan.how != kBinned) return;
  const BinMap<float> map = plan.bins.map;
  for_each_pack<kSize>(extent, part, [&](uint32_t image, uint32_t place, uint32_t) {
    const auto pack = load<kSize>(values + image * layout.batch_stride + place);
#pragma unroll
    for (int i = 0; i < kSize; ++i) count_bin(words, bin_of(to_float(pack.v[i]), map));
  });
  __syncthreads();
  uint32_t* out = counts.of(channel, part);
  for (uint32_t i = threadIdx.x; i < counts.per_part; i += blockDim.x) out[i] = words[i];
}

template <class T, int kGroup, int kSize, int kBlock>
__global__ void __launch_bounds__(kBlock)
    count_columns(const T* x, Layout layout, Extent extent, Summaries summaries, NormIn norm_in,
                  Quantile quantile, PartCounts counts) {
  static_assert(kBlock / kWarp >= kGroup);
  extern __shared__ uint32_t words[];
  __shared__ Room<ChannelPlan, kGroup> plans_room;
  ChannelPlan* const plans = plans_room.array();
  const uint32_t warp = threadIdx.x / kWarp, own = blockIdx.x * kGroup + warp;
  if (warp < kGroup && own < extent.channels) {
    plan_channel(summaries, to_float(x[own]), extent.n, own, norm_in, quantile, plans[warp]);
    if (blockIdx.y == 0 && threadIdx.x % kWarp == 0) summaries.plans[own] = plans[warp];
  }
  for (uint32_t i = threadIdx.x; i < counts.per_part * kGroup; i += blockDim.x) words[i] = 0;
  __syncthreads();
  const Column<kGroup, kSize> column(blockIdx.x);
  const uint32_t first = column.channel - blockIdx.x * kGroup;
  BinMap<float> map[kSize];
  bool binned[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    map[i] = plans[first + i].bins.map;
    binned[i] = column.channel < extent.channels && plans[first + i].how == kBinned;
  }
  column.for_each_place(extent, blockIdx.y, [&](uint32_t place) {
    const auto pack = load<kSize>(x + place * layout.row_stride + column.channel);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (binned[i]) {
        count_bin(words + (first + i) * counts.per_part, bin_of(to_float(pack.v[i]), map[i]));
      }
    }
  });
  __syncthreads();
  for (int g = 0; g < kGroup && blockIdx.x * kGroup + g < extent.channels; ++g) {
    uint32_t* out = counts.of(blockIdx.x * kGroup + g, blockIdx.y);
    for (uint32_t i = threadIdx.x; i < counts.per_part; i += blockDim.x) {
      out[i] = words[g * counts.per_part + i];
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    solve(Values<T> values, int64_t channel_stride, const ChannelPlan* plans, PartCounts counts,
          SolveCall call, LevelMap* maps) {
  extern __shared__ __align__(16) unsigned char memory[];
  SolveSpace& space = *reinterpret_cast<SolveSpace*>(memory);
  const uint32_t channel = blockIdx.x;
  values.data += channel * channel_stride;
  if (threadIdx.x == 0) space.plan = plans[channel];
  __syncthreads();
  if (space.plan.how == kBinned) {
    const int bins = space.plan.bins.bins;
    for (uint32_t i = threadIdx.x; i < counts.per_part; i += blockDim.x) {
      uint32_t even = 0, odd = 0;
#pragma unroll 8
      for (uint32_t part = 0; part < counts.parts; ++part) {
        const uint32_t word = counts.of(channel, part)[i];
        even += word & 0xffff;
        odd += word >> 16;
      }
      space.before[2 * i] = even;
      space.before[2 * i + 1] = odd;
    }
    __syncthreads();
    scan_array(space.before, bins + 1, space.refine.scan);
  }
  solve_channel(call, values, channel, space, maps[channel]);
}

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 3)
    write_rows(const T* x, Layout layout, T* y, Layout y_layout, uint8_t* level, Extent extent,
               const LevelMap* maps, int levels, int words) {
  __shared__ uint32_t table[kBinRoom / 4];
  __shared__ uint32_t threshold[kMostLevels + 1];
  const uint32_t channel = blockIdx.y;
  const LevelMap& map = maps[channel];
  const bool exact = map.how == kExact;
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    table[i] = reinterpret_cast<const uint32_t*>(map.level)[i];
  }
  if (exact) {
    for (int i = threadIdx.x; i <= kMostLevels; i += blockDim.x) threshold[i] = map.threshold[i];
  }
  __syncthreads();
  const uint8_t* by_bin = reinterpret_cast<const uint8_t*>(table);
  const BinMap<float> bins = map.map;
  const float scale = map.out_scale, shift = map.out_shift;
  const bool simple = map.how == kBinned && map.roots == 0, finite = map.how != kNotFinite;
  for_each_pack<kSize>(extent, blockIdx.x, [&](uint32_t image, uint32_t place, uint32_t index) {
    const auto pack = load<kSize>(x + row_offset(layout, channel, image, place));
    Pack<T, kSize> out;
    Pack<uint8_t, kSize> out_level;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float v = to_float(pack.v[i]);
      int k = 0;
      if (simple) {
        k = by_bin[bin_of(v, bins)];
      } else if (finite) {
        k = level_of(v, map, by_bin, threshold, levels);
      }
      out.v[i] = from_float<T>(k * scale + shift);
      out_level.v[i] = static_cast<uint8_t>(k);
    }
    *reinterpret_cast<Pack<T, kSize>*>(y + row_offset(y_layout, channel, image, place)) = out;
    *reinterpret_cast<Pack<uint8_t, kSize>*>(level + static_cast<int64_t>(channel) * extent.n +
                                             index) = out_level;
  });
}

template <class T, int kGroup, int kSize, int kBlock>
__global__ void __launch_bounds__(kBlock, 2)
    write_columns(const T* x, Layout layout, T* y, Layout y_layout, uint8_t* level, Extent extent,
                  const LevelMap* maps, int levels, int words) {
  extern __shared__ uint32_t tables[];
  const uint32_t base = blockIdx.x * kGroup;
  for (int i = threadIdx.x; i < words * kGroup; i += blockDim.x) {
    const uint32_t channel = base + i / words;
    if (channel < extent.channels) {
      tables[i] = reinterpret_cast<const uint32_t*>(maps[channel].level)[i % words];
    }
  }
  __syncthreads();
  const Column<kGroup, kSize> column(blockIdx.x);
  if (column.channel >= extent.channels) return;
  const uint8_t* by_bin =
      reinterpret_cast<const uint8_t*>(tables + (column.channel - base) * words);
  BinMap<float> bins[kSize];
  float scale[kSize], shift[kSize];
  bool simple[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const LevelMap& map = maps[column.channel + i];
    bins[i] = map.map;
    scale[i] = map.out_scale;
    shift[i] = map.out_shift;
    simple[i] = map.how == kBinned && map.roots == 0;
  }
  column.for_each_place(extent, blockIdx.y, [&](uint32_t place) {
    const auto pack = load<kSize>(x + place * layout.row_stride + column.channel);
    Pack<T, kSize> out;
    Pack<uint8_t, kSize> out_level;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float v = to_float(pack.v[i]);
      int k = 0;
      if (simple[i]) {
        k = by_bin[i * words * 4 + bin_of(v, bins[i])];
      } else if (const LevelMap& map = maps[column.channel + i]; map.how != kNotFinite) {
        k = level_of(v, map, map.level, map.threshold, levels);
      }
      out.v[i] = from_float<T>(k * scale[i] + shift[i]);
      out_level.v[i] = static_cast<uint8_t>(k);
    }
    *reinterpret_cast<Pack<T, kSize>*>(y + place * y_layout.row_stride + column.channel) = out;
    *reinterpret_cast<Pack<uint8_t, kSize>*>(level + static_cast<int64_t>(place) * extent.channels +
                                             column.channel) = out_level;
  });
}

}  // namespace qact::core::cuda
