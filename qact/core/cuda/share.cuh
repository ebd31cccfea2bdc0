// A thread's share of what a block works on.
#pragma once

#include <cstdint>
#include <utility>

namespace qact::core::cuda {

// load(i) gives a pack: the kRun values of a channel from the i-th on, or the i-th values of some
// channels. kPacks: so many are kept in registers; 0: any number, loaded again by every pass.
template <int kRun, int kBlock, int kPacks, class Load>
class Share {
 public:
  __device__ Share(uint32_t n, const Load& load) : n_(n), load_(load) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (index(j) < n_) kept_[j] = load_(index(j));
    }
  }

  // visit(pack, i)
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    if constexpr (kPacks > 0) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (index(j) < n_) visit(kept_[j], index(j));
      }
    } else {
#pragma unroll 4
      for (uint32_t i = index(0); i < n_; i += kBlock * kRun) visit(load_(i), i);
    }
  }

 private:
  using Loaded = decltype(std::declval<Load>()(0u));

  __device__ static uint32_t index(int j) { return (threadIdx.x + j * kBlock) * kRun; }

  uint32_t n_;
  Load load_;
  Loaded kept_[kPacks > 0 ? kPacks : 1];
};

template <int kRun, int kBlock, int kPacks, class Load>
__device__ inline Share<kRun, kBlock, kPacks, Load> share_of(uint32_t n, const Load& load) {
  return Share<kRun, kBlock, kPacks, Load>(n, load);
}

}  // namespace qact::core::cuda
