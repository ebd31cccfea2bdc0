// Both passes of the fused layer's backward direction over short channels, by one block or a
// cluster of them: a channel in rows, a few neighbours in columns.
#pragma once

#include "qact/core/cuda/backward.cuh"
#include "qact/core/cuda/cluster.cuh"
#include "qact/core/cuda/share.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <class T>
struct SmallGrad {
  Results<T> dy, dx;
  Results<uint8_t> code;
};

template <int kGroup, int kBlock, int kBlocks>
struct SmallGradSpace {
  union {  // one after the other
    SumRow sum_row[kGroup][kCodes];
    GradRow row[kGroup][kCodes];
  };
  float sums[kBlock / kWarp][kGroup * ThreadSums::kCount];
  double parts[kBlocks][kGroup * ThreadSums::kCount];  // of each block
  double totals[kGroup * ThreadSums::kCount];
  GradWeights weights[kGroup];
  GradMap map[kGroup];
};

// The sums of all blocks, from those of each block's warps, and what follows from them.
template <int kGroup, int kBlocks, class Space>
__device__ inline void solve_gradient(const GradSolve& solve, uint32_t first, Space& space) {
  using Blocks = Cluster<kBlocks>;
  constexpr int kSums = kGroup * ThreadSums::kCount;
  constexpr int kWarps = sizeof(space.sums) / sizeof(space.sums[0]);
  __syncthreads();
  Blocks::wait();
  if (threadIdx.x < kSums) {
    double total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += space.sums[w][threadIdx.x];
#pragma unroll
    for (int k = 0; k < kBlocks; ++k) {
      *Blocks::in(k, &space.parts[Blocks::rank()][threadIdx.x]) = total;
    }
  }
  if constexpr (kBlocks > 1) Blocks::sync();
  if (threadIdx.x < kWarp) {
    __syncwarp();
    if (threadIdx.x < kSums) {
      double total = 0;
#pragma unroll
      for (int k = 0; k < kBlocks; ++k) total += space.parts[k][threadIdx.x];
      space.totals[threadIdx.x] = total;
    }
    if (!QACT_MUTANT("cuda_grad_small_syncwarp")) __syncwarp();
    if (threadIdx.x < kGroup) {
      const auto totals = GradSums::from(space.totals + threadIdx.x * ThreadSums::kCount);
      space.map[threadIdx.x] =
          solve(first + threadIdx.x, space.weights[threadIdx.x], totals, Blocks::rank() == 0);
    }
  }
  __syncthreads();
}

template <class T, int kSize, int kGroup, int kBlock, int kPacks, int kBlocks>
__global__ void __launch_bounds__(kBlock, kGroup == 1 ? 1024 / kBlock : 1)
    backward_small(const __grid_constant__ SmallGrad<T> call,
                   const __grid_constant__ GradSolve solve) {
  static_assert(kGroup == 1 || kGroup == kSize);
  using Blocks = Cluster<kBlocks>;
  constexpr int kSums = kGroup * ThreadSums::kCount;
  __shared__ Room<SmallGradSpace<kGroup, kBlock, kBlocks>> room;
  auto& space = room.value();
  Blocks::arrive();
  const uint32_t rank = Blocks::rank(), first = blockIdx.x / kBlocks * kGroup;
  constexpr int kRun = kGroup == 1 ? kSize : 1;
  const auto load_gradient = [&call, first](uint32_t i) {
    return Gradient<T, kSize>{load<kSize>(&call.dy.at(first, i)),
                              load<kSize>(&call.code.at(first, i))};
  };
  const uint32_t n = static_cast<uint32_t>(solve.n);
  const Range range = range_of<kBlocks, kRun>(n, rank);
  const auto share = share_of<kRun, kBlock, kPacks>(range.begin, range.end, load_gradient);
  for (int i = threadIdx.x; i < kGroup * kCodes; i += kBlock) {
    space.sum_row[i / kCodes][i % kCodes] = SumRow(solve.table_of(first + i / kCodes), i % kCodes);
  }
  if (threadIdx.x >= kBlock - kGroup) {  // by threads that copy nothing, while others do
    const uint32_t g = kBlock - 1 - threadIdx.x;
    space.weights[g] = solve.weights(first + g);
  }
  __syncthreads();

  ThreadSums sums[kGroup];
  share.for_each([&](const Gradient<T, kSize>& given, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      sums[v % kGroup].add(to_float(given.dy.v[v]), space.sum_row[v % kGroup][given.code.v[v]]);
    }
  });
  float each[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i)
    each[i] = sums[i / ThreadSums::kCount].sum[i % ThreadSums::kCount];
  const float own = spread_sum<kSums>(each);
  if (threadIdx.x % (kWarp / kSums) == 0) {
    space.sums[threadIdx.x / kWarp][spread_index<kSums>()] = own;
  }
  solve_gradient<kGroup, kBlocks>(solve, first, space);
  for (int i = threadIdx.x; i < kGroup * kCodes; i += kBlock) {
    const int g = i / kCodes;
    space.row[g][i % kCodes] = space.map[g].row(solve.table_of(first + g), i % kCodes);
  }
  if (!QACT_MUTANT("cuda_grad_small_sync")) __syncthreads();
  share.for_each([&](const Gradient<T, kSize>& given, uint32_t i) {
    Pack<T, kSize> dx;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      dx.v[v] = from_float<T>(space.row[v % kGroup][given.code.v[v]](to_float(given.dy.v[v])));
    }
    *reinterpret_cast<Pack<T, kSize>*>(&call.dx.at(first, i)) = dx;
  });
}

}  // namespace qact::core::cuda
