// The kernels of the fused layer's backward pass over columns.
#pragma once

#include "qact/core/cuda/backward.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kColumnThreads = 512;

// Tables of a block's channels: a row of all of them for each code. The channels that lanes of a
// warp have at a time lie side by side, in banks of their own.
template <class Row, int kGroup, int kSize>
struct ColumnTables {
  static constexpr int kLanes = kGroup / kSize;
  Row row[kCodes * kGroup];

  // make(channel, code) for the block's channels: a warp has eight of them and four codes, so that
  // it reads few lines and writes to many banks.
  template <class Make>
  __device__ void fill(uint32_t channels, const Make& make) {
#pragma unroll 8  // loads that a thread waits for at once
    for (uint32_t i = threadIdx.x; i < kCodes * kGroup; i += kColumnThreads) {
      const uint32_t place = i % 8 + i / 32 % (kGroup / 8) * 8;
      const uint32_t code = i / 8 % 4 + i / (4 * kGroup) * 4;
      const uint32_t channel = place % kLanes * kSize + place / kLanes;
      if (channel < channels) row[code * kGroup + place] = make(channel, code);
    }
  }
  // Of the thread's own channels, the i-th.
  __device__ const Row& at(int i, int code) const {
    return row[code * kGroup + i * kLanes + threadIdx.x % kLanes];
  }
};

struct alignas(8) DensityRow {
  float f, f_xhat;
};

template <int kGroup, int kSize>
struct SumTables {
  ColumnTables<DensityRow, kGroup, kSize> density;
  ColumnTables<uint8_t, kGroup, kSize> level;
};

template <int kGroup>
__device__ inline uint32_t channels_of_block(const Extent& extent) {
  return min(static_cast<uint32_t>(kGroup), extent.channels - blockIdx.x * kGroup);
}

// A thread's own channels.
template <class T, int kSize>
struct ColumnGradient {
  const T* dy;
  const uint8_t* code;
  int64_t dy_row, code_row;

  __device__ ColumnGradient(const GradCall<T>& call, uint32_t channel)
      : dy(call.dy + call.dy_layout.start(channel)),
        code(call.code + call.code_layout.start(channel)),
        dy_row(call.dy_layout.row_stride),
        code_row(call.code_layout.row_stride) {}

  __device__ Gradient<T, kSize> operator()(uint32_t place) const {
    return {load<kSize>(dy + place * dy_row), load<kSize>(code + place * code_row)};
  }
};

inline constexpr int kGradAhead = 4;

template <class T, int kGroup, int kSize>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_columns(GradCall<T> call, Extent extent, GradSums* parts) {
  using Columns = Column<kGroup, kSize>;
  extern __shared__ __align__(32) unsigned char memory[];
  auto& tables = *reinterpret_cast<SumTables<kGroup, kSize>*>(memory);
  __shared__ Room<GradSums, kColumnThreads / kWarp * Columns::kLanes> shared_room;
  GradSums* const shared = shared_room.array();
  let_next_start();
  const Columns column(blockIdx.x);
  const uint32_t base = blockIdx.x * kGroup, channels = channels_of_block<kGroup>(extent);
  tables.density.fill(channels, [&](uint32_t channel, uint32_t code) {
    const SumRow row(call.solve.table_of(base + channel), code);
    return DensityRow{row.f, row.f_xhat};
  });
  tables.level.fill(channels, [&](uint32_t channel, uint32_t code) {
    return call.solve.table_of(base + channel).level[code];
  });
  __syncthreads();
  ThreadSums sums[kSize];
  column.template for_each_batch<kGradAhead>(
      extent, blockIdx.y, ColumnGradient<T, kSize>(call, column.channel),
      [&]<int kCount>(const Gradient<T, kSize>(&given)[kCount], uint32_t) {
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
#pragma unroll
          for (int i = 0; i < kSize; ++i) {
            const int code = given[a].code.v[i];
            const DensityRow row = tables.density.at(i, code);
            sums[i].add(to_float(given[a].dy.v[i]), tables.level.at(i, code), row.f, row.f_xhat);
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
__global__ void __launch_bounds__(kColumnThreads, 2)
    apply_columns(GradCall<T> call, Extent extent, const GradMap* maps) {
  extern __shared__ __align__(32) unsigned char memory[];
  auto& rows = *reinterpret_cast<ColumnTables<GradRow, kGroup, kSize>*>(memory);
  const Column<kGroup, kSize> column(blockIdx.x);
  const uint32_t base = blockIdx.x * kGroup;
  wait_for_previous();
  rows.fill(channels_of_block<kGroup>(extent), [&](uint32_t channel, uint32_t code) {
    return maps[base + channel].row(call.solve.table_of(base + channel), code);
  });
  if (!QACT_MUTANT("cuda_grad_columns_sync")) __syncthreads();
  T* own = call.dx + call.dx_layout.start(column.channel);
  column.template for_each_batch<kGradAhead>(
      extent, blockIdx.y, ColumnGradient<T, kSize>(call, column.channel),
      [&]<int kCount>(const Gradient<T, kSize>(&given)[kCount], uint32_t first) {
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
          Pack<T, kSize> dx;
#pragma unroll
          for (int i = 0; i < kSize; ++i) {
            const GradRow row = rows.at(i, given[a].code.v[i]);
            dx.v[i] = from_float<T>(row(to_float(given[a].dy.v[i])));
          }
          const int64_t row = (first + a * column.step()) * call.dx_layout.row_stride;
          *reinterpret_cast<Pack<T, kSize>*>(own + row) = dx;
        }
      });
}

}  // namespace qact::core::cuda
