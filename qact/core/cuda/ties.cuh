// Ties of a running context, counted below their bins as core/context.h explains.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/plan.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Equal values that a context moves, `from` the bin that counts them: of the channel's histogram,
// or of the context itself where values are counted one by one.
struct Tie {
  uint32_t count, key;
  int16_t from, to;
};

inline constexpr int kMostTies = 128;  // 64 of either sign: context_is_tie

// In no order: what is counted does not depend on it.
template <int kMost>
struct TieList {
  uint32_t count;
  Tie tie[kMost];

  __device__ void add(const Tie& one) { tie[atomicAdd(&count, 1u)] = one; }

  // Values in bins before `from`, and in it, that are counted elsewhere.
  __device__ uint32_t before(int from) const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += tie[i].from < from ? tie[i].count : 0;
    return sum;
  }
  __device__ uint32_t in(int from) const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += tie[i].from == from ? tie[i].count : 0;
    return sum;
  }
  // Values that a bin of the context has instead.
  __device__ uint32_t moved_to(int to) const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += tie[i].to == to ? tie[i].count : 0;
    return sum;
  }
};

// Where all bins tell their levels, ties are not looked for. With few levels a bin may hold one.
struct NoTies {
  __device__ uint32_t before(int) const { return 0; }
  __device__ uint32_t in(int) const { return 0; }
  __device__ uint32_t moved_to(int) const { return 0; }
};

// The context's bin of a tie at x, in a channel with bins: by the CPU's roundings, so that 0 stays
// 0.
__device__ inline int16_t tie_bin(const BinPlan<float>& bins, float x) {
  const double at = static_cast<double>(bins.map.t(x)) + bins.map.offset;
  const float z = static_cast<float>(__dadd_rn(bins.z_first, __dmul_rn(at, bins.z_width)));
  return static_cast<int16_t>(QACT_MUTANT("cuda_tie_stays") ? context_bin(z) : context_tie_bin(z));
}

}  // namespace qact::core::cuda
