// Both passes of the fused layer's backward direction over short channels, by one block: a
// channel in rows, a few neighbours in columns.
#pragma once

#include "qact/core/cuda/backward.cuh"
#include "qact/core/cuda/share.cuh"

namespace qact::core::cuda {

template <class T>
struct SmallGrad {
  Results<T> dy, x, dx;
  Results<uint8_t> level;
};

template <int kGroup, int kBlock>
struct SmallGradSpace {
  alignas(16) int32_t nodes[kGroup][kDensityNodes];
  float sums[kBlock / kWarp][kGroup * ThreadSums::kCount];
  double totals[kGroup * ThreadSums::kCount];
  GradWeights weights[kGroup];
  GradMap map[kGroup];
};

template <class T, int kSize, int kGroup, int kBlock, int kPacks>
__global__ void __launch_bounds__(kBlock, kGroup == 1 ? 1024 / kBlock : 1)
    backward_small(const __grid_constant__ SmallGrad<T> call,
                   const __grid_constant__ GradSolve solve) {
  static_assert(kGroup == 1 || kGroup == kSize);
  constexpr int kSums = kGroup * ThreadSums::kCount;
  __shared__ Room<SmallGradSpace<kGroup, kBlock>> room;
  auto& space = room.value();
  const uint32_t first = blockIdx.x * kGroup;
  constexpr int kRun = kGroup == 1 ? kSize : 1;
  const auto load_gradient = [&call, first](uint32_t i) {
    return Gradient<T, kSize>{load<kSize>(&call.dy.at(first, i)), load<kSize>(&call.x.at(first, i)),
                              load<kSize>(&call.level.at(first, i))};
  };
  const auto share = share_of<kRun, kBlock, kPacks>(static_cast<uint32_t>(solve.n), load_gradient);
  const int4* from = reinterpret_cast<const int4*>(solve.nodes_of(first));
  int4* nodes = reinterpret_cast<int4*>(space.nodes);
  for (int i = threadIdx.x; i < kGroup * kDensityNodes / 4; i += kBlock) nodes[i] = from[i];
  if (threadIdx.x >= kBlock - kGroup) {  // by threads that copy nothing, while others do
    const uint32_t g = kBlock - 1 - threadIdx.x;
    space.weights[g] = solve.weights(first + g);
  }
  DensityAt density[kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) density[g] = DensityAt(solve.stats[first + g]);
  __syncthreads();

  ThreadSums sums[kGroup];
  share.for_each([&](const Gradient<T, kSize>& given, uint32_t) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      const float d = to_float(given.x.v[v]) - density[g].centre;
      sums[g].add(to_float(given.dy.v[v]), given.level.v[v], density[g](d, space.nodes[g]), d);
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
  __syncthreads();
  if (threadIdx.x < kWarp) {
    if (threadIdx.x < kSums) {
      double total = 0;
#pragma unroll
      for (int w = 0; w < kBlock / kWarp; ++w) total += space.sums[w][threadIdx.x];
      space.totals[threadIdx.x] = total;
    }
    __syncwarp();
    if (threadIdx.x < kGroup) {
      const auto totals = GradSums::from(space.totals + threadIdx.x * ThreadSums::kCount);
      space.map[threadIdx.x] = solve(first + threadIdx.x, space.weights[threadIdx.x], totals, true);
    }
  }
  __syncthreads();
  GradMap map[kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) map[g] = space.map[g];
  share.for_each([&](const Gradient<T, kSize>& given, uint32_t i) {
    Pack<T, kSize> dx;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const int g = v % kGroup;
      const float d = to_float(given.x.v[v]) - density[g].centre;
      dx.v[v] = from_float<T>(
          map[g](to_float(given.dy.v[v]), given.level.v[v], density[g](d, space.nodes[g]), d));
    }
    *reinterpret_cast<Pack<T, kSize>*>(&call.dx.at(first, i)) = dx;
  });
}

}  // namespace qact::core::cuda
