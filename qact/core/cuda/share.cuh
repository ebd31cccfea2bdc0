// A thread's share of what a block works on.
#pragma once

#include <cstdint>
#include <utility>

#include "qact/core/mutant.h"

namespace qact::core::cuda {

// load(i) gives a pack: the kRun values of a channel from the i-th on, or the i-th values of some
// channels. The block has those of [begin, end). kPacks: so many are kept in registers; 0: any
// number, loaded again by every pass.
template <int kRun, int kBlock, int kPacks, class Load>
class Share {
 public:
  __device__ Share(uint32_t begin, uint32_t end, const Load& load)
      : begin_(begin), end_(end), load_(load) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (index(j) < end_) kept_[j] = load_(index(j));
    }
  }

  // visit(pack, i)
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    if constexpr (kPacks > 0) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (index(j) < end_ - QACT_MUTANT("cuda_share_tail")) visit(kept_[j], index(j));
      }
    } else {
#pragma unroll 4
      for (uint32_t i = index(0); i < end_; i += kBlock * kRun) visit(load_(i), i);
    }
  }

 private:
  using Loaded = decltype(std::declval<Load>()(0u));

  __device__ uint32_t index(int j) const { return begin_ + (threadIdx.x + j * kBlock) * kRun; }

  uint32_t begin_, end_;
  Load load_;
  Loaded kept_[kPacks > 0 ? kPacks : 1];
};

template <int kRun, int kBlock, int kPacks, class Load>
__device__ inline Share<kRun, kBlock, kPacks, Load> share_of(uint32_t begin, uint32_t end,
                                                             const Load& load) {
  return Share<kRun, kBlock, kPacks, Load>(begin, end, load);
}

}  // namespace qact::core::cuda
