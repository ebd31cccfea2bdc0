// The ties of a context whose values are counted one by one, as core/context_ties.h has them.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/refine.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

__device__ inline uint32_t context_key(float z) { return isnan(z) ? kNoKey : order_key(z, false); }

// `count` values are in the context's bin of the thread's number, by their own bins; returns how
// many there are once ties have moved. keys: context_key of all values. Only bins that are as heavy
// as a tie may hold one: refine() divides those, by a rule without levels.
template <class AllKeys, class Limit>
__device__ inline int64_t move_ties(const AllKeys& keys, uint32_t count,
                                    RefineSpace<Limit>& space) {
  const int bin = threadIdx.x;
  const bool positive = bin >= kContextBins / 2;
  uint32_t negatives = 0, positives = 0, roots = 0;
  scan_block(positive ? 0 : count, space.scan, negatives);
  scan_block(positive ? count : 0, space.scan, positives);
  const bool heavy = context_is_tie(count, positive ? positives : negatives);
  const uint32_t at = scan_block(heavy, space.scan, roots);
  if (roots == 0) return count;
  if (heavy) {
    const auto first = [](int b) {
      return first_where(context_key(-INFINITY), context_key(INFINITY) + 1,
                         [&](uint32_t key) { return context_bin(key_value(key, false)) >= b; });
    };
    Root root = {};
    root.lo = first(bin);
    root.hi = first(bin + 1) - 1;
    root.bin = static_cast<int16_t>(bin);
    root.count = count;
    root.positive = positive;
    space.roots[at] = root;
  }
  if (threadIdx.x == 0) space.ties.count = 0;
  Quantile none;
  none.levels = 0;
  const LevelRule rule(none, negatives, positives);
  __syncthreads();
  refine(keys, Ranking{rule, negatives, positives, true}, space, static_cast<int>(roots), 0);
  for (uint32_t i = threadIdx.x; i < space.ties.count; i += blockDim.x) {
    Tie& tie = space.ties.tie[i];
    tie.to = static_cast<int16_t>(context_tie_bin(key_value(tie.key, false)));
  }
  __syncthreads();
  return int64_t{count} - space.ties.in(bin) +
         (QACT_MUTANT("cuda_tie_lost") ? 0 : space.ties.moved_to(bin));
}

}  // namespace qact::core::cuda
