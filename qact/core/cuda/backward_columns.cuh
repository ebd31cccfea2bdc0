// The kernels of the fused layer's backward pass over columns.
#pragma once

#include "qact/core/cuda/backward.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// What a thread keeps per channel.
template <int kSize>
struct ColumnDensity {
  DensityAt at[kSize];
  const int32_t* nodes;

  __device__ float operator()(int i, float d) const { return at[i](d, nodes + i * kDensityNodes); }
};

template <int kGroup, int kSize>
__device__ inline ColumnDensity<kSize> load_column(const GradSolve& solve, uint32_t channel,
                                                   int32_t* nodes) {
  const uint32_t base = blockIdx.x * kGroup;
  const int4* from = reinterpret_cast<const int4*>(solve.nodes_of(base));
  const int packs = min(kGroup, static_cast<int>(solve.channels - base)) * kDensityNodes / 4;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) reinterpret_cast<int4*>(nodes)[i] = from[i];
  ColumnDensity<kSize> out;
  out.nodes = nodes + (channel - base) * kDensityNodes;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (channel + i < solve.channels) out.at[i] = DensityAt(solve.stats[channel + i]);
  }
  return out;
}

template <int kSize, class T>
__device__ inline Gradient<T, kSize> load_gradient(const GradCall<T>& call, const Extent& extent,
                                                   uint32_t place, uint32_t channel) {
  return {load<kSize>(call.dy + place * call.dy_layout.row_stride + channel),
          load<kSize>(call.x + place * call.x_layout.row_stride + channel),
          load<kSize>(call.level + static_cast<int64_t>(place) * extent.channels + channel)};
}

inline constexpr int kGradAhead = 4;

template <class T, int kGroup, int kSize>
__global__ void __launch_bounds__(kGradThreads, 4)
    sum_columns(GradCall<T> call, Extent extent, GradSums* parts) {
  using Columns = Column<kGroup, kSize>;
  __shared__ __align__(16) int32_t nodes[kGroup * kDensityNodes];
  __shared__ Room<GradSums, kGradThreads / kWarp * Columns::kLanes> shared_room;
  GradSums* const shared = shared_room.array();
  let_next_start();
  const Columns column(blockIdx.x);
  const auto density = load_column<kGroup, kSize>(call.solve, column.channel, nodes);
  __syncthreads();
  ThreadSums sums[kSize];
  column.template for_each_batch<kGradAhead>(
      extent, blockIdx.y,
      [&](uint32_t place) { return load_gradient<kSize>(call, extent, place, column.channel); },
      [&]<int kCount>(const Gradient<T, kSize>(&given)[kCount], uint32_t) {
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
#pragma unroll
          for (int i = 0; i < kSize; ++i) {
            const float d = to_float(given[a].x.v[i]) - density.at[i].centre;
            sums[i].add(to_float(given[a].dy.v[i]), given[a].level.v[i], density(i, d), d);
          }
        }
      });
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const GradSums merged = merge_columns<Columns::kLanes>(GradSums::from(sums[i].sum), shared);
    const uint32_t channel = blockIdx.x * kGroup + threadIdx.x * kSize + i;
    if (threadIdx.x < Columns::kLanes && channel < extent.channels) {
      parts[static_cast<int64_t>(channel) * extent.parts + blockIdx.y] = merged;
    }
  }
}

// A block a channel: there are too many parts in columns for every block to merge them.
inline constexpr int kMergeThreads = 128;
static __global__ void __launch_bounds__(kMergeThreads)
    merge_columns_parts(GradSolve solve, const GradSums* parts, uint32_t count, GradMap* maps) {
  __shared__ Room<GradSums, kMergeThreads / kWarp> shared_room;
  wait_for_previous();
  let_next_start();
  parts += static_cast<int64_t>(blockIdx.x) * count;
  GradSums sums;
  for (uint32_t i = threadIdx.x; i < count; i += kMergeThreads) {
    sums = GradSums::merge(sums, parts[i]);
  }
  sums = merge_columns<1>(sums, shared_room.array());
  if (threadIdx.x == 0) maps[blockIdx.x] = solve(blockIdx.x, sums, true);
}

template <class T, int kGroup, int kSize>
__global__ void __launch_bounds__(kGradThreads, 4)
    apply_columns(GradCall<T> call, Extent extent, const GradMap* maps) {
  using Columns = Column<kGroup, kSize>;
  __shared__ __align__(16) int32_t nodes[kGroup * kDensityNodes];
  const Columns column(blockIdx.x);
  const auto density = load_column<kGroup, kSize>(call.solve, column.channel, nodes);
  wait_for_previous();
  if (!QACT_MUTANT("cuda_grad_columns_sync")) __syncthreads();
  GradMap map[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (column.channel + i < extent.channels) map[i] = maps[column.channel + i];
  }
  column.template for_each_batch<kGradAhead>(
      extent, blockIdx.y,
      [&](uint32_t place) { return load_gradient<kSize>(call, extent, place, column.channel); },
      [&]<int kCount>(const Gradient<T, kSize>(&given)[kCount], uint32_t first) {
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
          Pack<T, kSize> dx;
#pragma unroll
          for (int i = 0; i < kSize; ++i) {
            const float d = to_float(given[a].x.v[i]) - density.at[i].centre;
            dx.v[i] = from_float<T>(
                map[i](to_float(given[a].dy.v[i]), given[a].level.v[i], density(i, d), d));
          }
          const int64_t row = (first + a * column.step()) * call.dx_layout.row_stride;
          *reinterpret_cast<Pack<T, kSize>*>(call.dx + row + column.channel) = dx;
        }
      });
}

}  // namespace qact::core::cuda
