// Threads of a block that work on one channel together: all of them, or one of several teams side
// by side, which all take the same steps. Sums are taken in an order that never changes.
#pragma once

#include <cstdint>

#include "qact/core/cuda/block.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <int kCount>
struct Team {
  static constexpr int kThreads = kCount;
  static constexpr int kWarps = kThreads / kWarp;
  static_assert(kThreads % kWarp == 0);
  int index, thread, lane, warp;  // of the team in the block; of the thread in the team

  __device__ Team()
      : index(threadIdx.x / kThreads),
        thread(threadIdx.x % kThreads),
        lane(threadIdx.x % kWarp),
        warp(threadIdx.x % kThreads / kWarp) {}

  __device__ static void sync() { __syncthreads(); }

  // Exclusive prefix sums. `shared`, here and below, holds a word of each warp, and may be used
  // again once the teams have met.
  template <class Word>
  __device__ Word scan(Word v, Word* shared) const {
    Word inclusive = v;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const Word other = __shfl_up_sync(0xffffffffu, inclusive, step);
      if (lane >= step) inclusive += other;
    }
    if (lane == kWarp - 1) shared[warp] = inclusive;
    if (!QACT_MUTANT("cuda_team_scan_sync")) sync();
    Word before = inclusive - v;
#pragma unroll
    for (int w = 0; w < kWarps - 1; ++w) before += w < warp ? shared[w] : 0;
    return before;
  }

  // sum_shared() after a sync of all who called add_shared().
  template <class Word>
  __device__ void add_shared(Word v, Word* shared) const {
    v = sum_warp(v);
    if (lane == 0) shared[warp] = v;
  }
  template <class Word>
  __device__ static Word sum_shared(const Word* shared) {
    Word sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared[w];
    return sum;
  }

  __device__ uint32_t highest(uint32_t v, uint32_t* shared) const {
    v = __reduce_max_sync(0xffffffffu, v);
    if (lane == 0) shared[warp] = v;
    sync();
    uint32_t out = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) out = max(out, shared[w]);
    return out;
  }
};

}  // namespace qact::core::cuda
