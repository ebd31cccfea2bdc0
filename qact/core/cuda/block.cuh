// Sums and prefix sums over the threads of a block, in an order that never changes.
#pragma once

#include <cstdint>

#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kWarp = 32;

// Room in shared memory for a value whose initialisers must not run there.
template <class Struct, int kCount = 1>
struct Room {
  alignas(Struct) unsigned char bytes[sizeof(Struct) * kCount];

  __device__ Struct* array() { return reinterpret_cast<Struct*>(bytes); }
  __device__ Struct& value() { return *array(); }
};

// Any plain struct of 32-bit words, from the lane whose number differs in `mask`.
template <class Struct>
__device__ inline Struct shuffle_xor(const Struct& v, int mask) {
  static_assert(sizeof(Struct) % 4 == 0);
  constexpr int kWords = sizeof(Struct) / 4;
  Struct out;
  const uint32_t* from = reinterpret_cast<const uint32_t*>(&v);
  uint32_t* to = reinterpret_cast<uint32_t*>(&out);
#pragma unroll
  for (int i = 0; i < kWords; ++i) to[i] = __shfl_xor_sync(0xffffffffu, from[i], mask);
  return out;
}

// Merges the values of all threads of one column, kColumns of them side by side in every
// warp. Threads 0..kColumns-1 get the results. `shared` holds (threads / 32) * kColumns.
template <int kColumns, class Struct>
__device__ inline Struct merge_columns(Struct v, Struct* shared) {
  static_assert(kColumns <= kWarp);
#pragma unroll
  for (int mask = kWarp / 2; mask >= kColumns; mask /= 2)
    v = Struct::merge(v, shuffle_xor(v, mask));
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  __syncthreads();
  if (lane < kColumns) shared[warp * kColumns + lane] = v;
  if (!QACT_MUTANT("cuda_merge_sync")) __syncthreads();
  if (threadIdx.x < kColumns) {
    v = shared[threadIdx.x];
    for (int w = 1; w < blockDim.x / kWarp; ++w) {
      v = Struct::merge(v, shared[w * kColumns + threadIdx.x]);
    }
  }
  return v;
}

// The merged value of a block's threads, for all of them.
template <class Struct>
__device__ inline Struct merge_block(const Struct& v, Struct* shared) {
  const Struct merged = merge_columns<1>(v, shared);
  __syncthreads();
  if (threadIdx.x == 0) shared[0] = merged;
  __syncthreads();
  return shared[0];
}

__device__ inline unsigned long long sum_warp(unsigned long long v) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
  return v;
}

__device__ inline uint32_t sum_warp(uint32_t v) { return __reduce_add_sync(0xffffffffu, v); }

// The sums of kCount numbers over a warp. Each step halves what a lane has left to add up, so
// that a lane gets one of the sums, that of its spread_index.
template <int kCount, int kMask = kWarp / 2, class Real>
__device__ inline Real spread_sum(Real* v) {
  static_assert((kCount & (kCount - 1)) == 0);
  constexpr int kHalf = kCount / 2;
  const bool upper = threadIdx.x & kMask;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const Real sent = upper ? v[i] : v[kHalf + i];
    v[i] = (upper ? v[kHalf + i] : v[i]) + __shfl_xor_sync(0xffffffffu, sent, kMask);
  }
  if constexpr (kHalf == 0) v[0] += __shfl_xor_sync(0xffffffffu, v[0], kMask);
  constexpr int kLeft = kHalf == 0 ? 1 : kHalf;
  if constexpr (kMask > 1) return spread_sum<kLeft, kMask / 2>(v);
  return v[0];
}
template <int kCount>
__device__ inline int spread_index() {
  return threadIdx.x % kWarp / (kWarp / kCount);
}

// Exclusive prefix sums over the block; `total` is the sum. `shared` holds 33 words.
__device__ inline uint32_t scan_block(uint32_t v, uint32_t* shared, uint32_t& total) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  uint32_t inclusive = v;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  __syncthreads();
  if (lane == kWarp - 1) shared[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const uint32_t own = lane < blockDim.x / kWarp ? shared[lane] : 0;
    uint32_t sum = own;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const uint32_t other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    shared[lane] = sum - own;
    if (lane == kWarp - 1) shared[kWarp] = sum;
  }
  __syncthreads();
  total = shared[kWarp];
  const uint32_t before = shared[warp] + inclusive - v;
  __syncthreads();
  return before;
}

// counts[0..size) to exclusive prefix sums in place. Returns the sum.
__device__ inline uint32_t scan_array(uint32_t* counts, int size, uint32_t* shared) {
  const int each = (size + blockDim.x - 1) / blockDim.x;
  const int begin = min(size, static_cast<int>(threadIdx.x) * each), end = min(size, begin + each);
  uint32_t own = 0, total = 0;
  for (int i = begin; i < end; ++i) own += counts[i];
  uint32_t before = scan_block(own, shared, total);
  for (int i = begin; i < end; ++i) {
    const uint32_t count = counts[i];
    counts[i] = before;
    before += count;
  }
  __syncthreads();
  return total;
}

}  // namespace qact::core::cuda
