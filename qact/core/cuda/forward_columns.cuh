// The passes of the forward direction over columns. A thread keeps kSize channels, and
// tables of a block's kGroup channels lie in shared memory.
#pragma once

#include "qact/core/cuda/forward.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <class T, int kGroup, int kSize>
__global__ void __launch_bounds__(kThreads)
    summarise_columns(const T* x, Layout layout, Extent extent, Partial* parts) {
  using Columns = Column<kGroup, kSize>;
  __shared__ Room<Partial, kThreads / kWarp * Columns::kLanes> shared_room;
  Partial* const shared = shared_room.array();
  const Columns column(blockIdx.x);
  const T* own = x + layout.start(column.channel);
  Partial all[kSize];
  float shift[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    shift[i] = column.channel < extent.channels ? shift_of(to_float(own[i])) : 0;
  }
  column.template for_each_batch<8>(
      extent, blockIdx.y,
      [&](uint32_t place) { return load<kSize>(own + place * layout.row_stride); },
      [&]<int kCount>(const Pack<T, kSize>(&packs)[kCount], uint32_t) {
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          float v[kCount];
#pragma unroll
          for (int a = 0; a < kCount; ++a) v[a] = to_float(packs[a].v[i]);
          all[i].add(v, shift[i]);
        }
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

// A channel's bins as a thread keeps them. Those without bins have all values in the first,
// whose count nobody reads.
struct ColumnBins {
  float origin = 0, scale = 0;
  int base = 0;  // of the channel's table, plus the offset of its bins

  __device__ int operator()(float x) const { return bin_of(x, origin, scale, base); }
};

// The plans of a block's channels, a warp each; the first block of a channel hands its plan on.
template <int kGroup, class T>
__device__ inline void plan_columns(const T* x, const Starts& start, const Extent& extent,
                                    const Summaries& summaries, const NormIn& norm_in,
                                    const Quantile& quantile, ChannelPlan* plans) {
  const uint32_t warp = threadIdx.x / kWarp, own = blockIdx.x * kGroup + warp;
  if (warp < kGroup && own < extent.channels) {
    plan_channel(summaries, to_float(x[start(own)]), extent.n, own, norm_in, quantile, plans[warp]);
    if (blockIdx.y == 0 && threadIdx.x % kWarp == 0) summaries.plans[own] = plans[warp];
  }
  __syncthreads();
}

template <class T, int kGroup, int kSize, int kBlock>
__global__ void __launch_bounds__(kBlock)
    count_columns(const T* x, Layout layout, Extent extent, Summaries summaries, NormIn norm_in,
                  Quantile quantile, PartCounts counts) {
  static_assert(kBlock / kWarp >= kGroup);
  extern __shared__ __align__(16) uint32_t tables[];  // counting by one is fastest in whole words
  __shared__ Room<ChannelPlan, kGroup> plans_room;
  ChannelPlan* const plans = plans_room.array();
  const uint32_t table = counts.per_part * 2;
  clear_words(tables, table * kGroup);
  let_next_start();
  plan_columns<kGroup>(x, layout.start, extent, summaries, norm_in, quantile, plans);
  const Column<kGroup, kSize> column(blockIdx.x);
  const uint32_t first = column.channel - blockIdx.x * kGroup;
  const T* own = x + layout.start(column.channel);
  ColumnBins bins[kSize];
  bool some = false;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    bins[i].base = static_cast<int>((first + i) * table);
    if (column.channel < extent.channels && plans[first + i].how == kBinned) {
      const BinMap<float>& map = plans[first + i].bins.map;
      bins[i] = {map.origin, map.scale, bins[i].base + map.offset};
      some = true;
    }
  }
  if (!__syncthreads_or(some)) return;
  column.template for_each_batch<8>(
      extent, blockIdx.y,
      [&](uint32_t place) { return load<kSize>(own + place * layout.row_stride); },
      [&]<int kCount>(const Pack<T, kSize>(&packs)[kCount], uint32_t) {
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
#pragma unroll
          for (int i = 0; i < kSize; ++i) {
            atomicAdd(&tables[bins[i](to_float(packs[a].v[i]))], 1u);
          }
        }
      });
  if (!QACT_MUTANT("cuda_count_columns_sync")) __syncthreads();
  constexpr uint32_t kEach = kBlock / kGroup;  // threads of a channel
  const uint32_t mine = threadIdx.x / kEach, channel = blockIdx.x * kGroup + mine;
  if (channel < extent.channels) {
    counts.put(tables + mine * table, channel, blockIdx.y, threadIdx.x % kEach, kEach);
  }
}

template <class T, int kGroup, int kSize, int kBlock>
__global__ void __launch_bounds__(kBlock, 1024 / kBlock)
    write_columns(const T* x, Layout layout, T* y, Layout y_layout, uint8_t* code,
                  Layout code_layout, Extent extent, const PassMap* maps, int levels, int words) {
  extern __shared__ __align__(16) uint32_t tables[];
  const uint32_t base = blockIdx.x * kGroup, pitch = words + kCodes / 4;
  for (int g = threadIdx.x / kWarp; g < kGroup; g += kBlock / kWarp) {
    if (base + g < extent.channels) {
      load_codes(maps[base + g], words, tables + g * pitch, threadIdx.x % kWarp, kWarp);
    }
  }
  const Column<kGroup, kSize> column(blockIdx.x);
  const T* own = x + layout.start(column.channel);
  T* own_y = y + y_layout.start(column.channel);
  uint8_t* own_code = code ? code + code_layout.start(column.channel) : nullptr;
  const uint8_t* by_bin = reinterpret_cast<const uint8_t*>(tables);
  ColumnBins bins[kSize];
  const uint8_t* by_code[kSize] = {};
  float scale[kSize], shift[kSize];
  bool simple = true;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (column.channel >= extent.channels) break;
    const PassMap& map = maps[column.channel + i];
    const int table = static_cast<int>((column.channel - base + i) * pitch * 4);
    bins[i] = {map.map.origin, map.map.scale, table + map.map.offset};
    by_code[i] = by_bin + table + words * 4;
    scale[i] = map.norm.scale;
    shift[i] = map.norm.shift;
    simple &= map.simple();
  }
  const auto write = [&](const auto& find) {
    column.template for_each_batch<4>(
        extent, blockIdx.y,
        [&](uint32_t place) { return load<kSize>(own + place * layout.row_stride); },
        [&]<int kCount>(const Pack<T, kSize>(&packs)[kCount], uint32_t first) {
#pragma unroll
          for (int a = 0; a < kCount; ++a) {
            const uint32_t place = first + a * column.step();
            Pack<T, kSize> out;
            Pack<uint8_t, kSize> out_code;
#pragma unroll
            for (int i = 0; i < kSize; ++i) {
              const Found found = find(i, to_float(packs[a].v[i]));
              out.v[i] = from_float<T>(found.level * scale[i] + shift[i]);
              out_code.v[i] = static_cast<uint8_t>(found.code);
            }
            *reinterpret_cast<Pack<T, kSize>*>(own_y + place * y_layout.row_stride) = out;
            if (!code) continue;
            *reinterpret_cast<Pack<uint8_t, kSize>*>(own_code + place * code_layout.row_stride) =
                out_code;
          }
        });
  };
  if (__syncthreads_and(simple)) {
    write([&](int i, float v) {
      const int found = by_bin[bins[i](v)];
      return Found{by_code[i][found], found};
    });
  } else {
    write([&](int i, float v) {
      const PassMap& map = maps[column.channel + i];
      return find_code(v, map, map.code, map.threshold, levels);
    });
  }
}

}  // namespace qact::core::cuda
