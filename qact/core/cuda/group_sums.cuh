// The moments and ranges of the few channels that a block has, over its share of their values.
#pragma once

#include "qact/core/cuda/small_call.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// What the warps of a block add up of kGroup channels.
template <int kGroup, int kBlock>
struct GroupSums {
  static constexpr int kWarps = kBlock / kWarp;
  double sums[kWarps][2 * kGroup];
  uint32_t low[kWarps][kGroup], high[kWarps][kGroup];
  float shift[kGroup];

  // A channel's part that the block has, by a warp. What floats cannot hold shows in the sums, and
  // is looked at again.
  __device__ Partial of(int g) const {
    const int lane = threadIdx.x % kWarp;
    Partial all;
    if (lane < kWarps) {
      all.sum = sums[lane][2 * g];
      all.square = sums[lane][2 * g + 1];
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      all.sum += __shfl_xor_sync(0xffffffffu, all.sum, mask);
      all.square += __shfl_xor_sync(0xffffffffu, all.square, mask);
    }
    const int from = min(lane, kWarps - 1);
    all.low = key_value(__reduce_min_sync(0xffffffffu, low[from][g]), false);
    all.high = key_value(__reduce_max_sync(0xffffffffu, high[from][g]), false);
    return all;
  }
};

template <int kGroup, int kBlock, class Share, class T>
__device__ inline void sum_group(const Share& share, const SmallCall<T>& call, uint32_t first,
                                 GroupSums<kGroup, kBlock>& space) {
  float shift[kGroup], sum[kGroup] = {}, square[kGroup] = {}, low[kGroup], high[kGroup];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    shift[g] = shift_of(to_float(call.x.data[call.x.start(first + g)]));
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
    if (threadIdx.x == g) space.shift[g] = shift[g];
    sums[2 * g] = sum[g];
    sums[2 * g + 1] = square[g];
    const uint32_t lowest = __reduce_min_sync(0xffffffffu, order_key(low[g], false));
    const uint32_t highest = __reduce_max_sync(0xffffffffu, order_key(high[g], false));
    if (lane == g) space.low[warp][g] = lowest, space.high[warp][g] = highest;
  }
  const double spread = spread_sum<2 * kGroup>(sums);
  if (lane % (kWarp / (2 * kGroup)) == 0) space.sums[warp][spread_index<2 * kGroup>()] = spread;
  if (!QACT_MUTANT("cuda_group_sums_sync")) __syncthreads();
}

}  // namespace qact::core::cuda
