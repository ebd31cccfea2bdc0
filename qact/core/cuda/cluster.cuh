// Blocks that start together and reach each other's shared memory (sm_90 and later).
#pragma once

#include <cstdint>

#include "qact/core/mutant.h"

namespace qact::core::cuda {

// A block on its own.
struct LoneBlock {
  __device__ static uint32_t rank() { return 0; }
  __device__ static void arrive() {}
  __device__ static void wait() {}
  __device__ static void sync() { __syncthreads(); }
  template <class Value>
  __device__ static Value* in(uint32_t, Value* own) {
    return own;
  }
};

#if __CUDA_ARCH__ >= 900
template <int kBlocks>
struct Cluster {
  __device__ static uint32_t rank() { return __clusterRelativeBlockRank(); }
  // Before a block writes to others, all must have arrived.
  __device__ static void arrive() { __cluster_barrier_arrive(); }
  __device__ static void wait() { __cluster_barrier_wait(); }
  __device__ static void sync() {
    if (QACT_MUTANT("cuda_cluster_sync")) return;
    arrive();
    wait();
  }
  // What a block has at `own`, in the block of that rank.
  template <class Value>
  __device__ static Value* in(uint32_t rank, Value* own) {
    return static_cast<Value*>(__cluster_map_shared_rank(own, rank));
  }
};
template <>
struct Cluster<1> : LoneBlock {};
#else
template <int kBlocks>
struct Cluster : LoneBlock {};  // more than one are never started there
#endif

// What a cluster's block has of n values that lie in runs of kRun.
struct Range {
  uint32_t begin, end;
};
template <int kBlocks, int kRun>
__device__ inline Range range_of(uint32_t n, uint32_t rank) {
  if constexpr (kBlocks == 1) return {0, n};
  const uint32_t each = (n / kRun + kBlocks - 1) / kBlocks * kRun;
  return {min(n, each * rank), min(n, each * (rank + 1))};
}

}  // namespace qact::core::cuda
