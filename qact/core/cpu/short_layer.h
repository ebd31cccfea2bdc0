// The fused layer on short contexts, which keep nothing but x: they are ranked again in the
// backward pass. A vector of channels is worked on at a time (short_kernels.h).
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/cpu/aligned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

// Whether contexts of n values are ranked so: those whose codes are never kept (contexts.h).
inline bool is_short_context(const Quantile& quantile, int64_t n, DType dtype) {
  return n <= kShortContext && quantile.exact_for(n) &&
         n * size_of(dtype) < static_cast<int64_t>(sizeof(CodeTable));
}

// For any number of calls of the same channels that have one context per channel.
template <class Real>
class ShortLayer {
 public:
  explicit ShortLayer(Simd simd) : kernels_(tensor_kernels<Real>(simd)) {}

  void forward(const LayerForward& call);
  void backward(const LayerBackward& call);

 private:
  static constexpr int64_t kN = kLanes<Real>;

  template <class Call>
  void start(const Call& call, bool backward);
  // move(from, to, runs) for some channels' values, in a tensor and as rows of lanes.
  template <class Move>
  void move_rows(const View& view, const Shape& shape, int64_t first, Real* rows,
                 const Move& move) const;
  void load(const View& from, const Shape& shape, int64_t first, Real* rows) const;
  void store(const View& to, const Shape& shape, int64_t first);
  template <class Call>
  void set_affines(const Call& call);

  const TensorKernels<Real>& kernels_;
  std::vector<ShortAffine<Real>> affines_;  // of each vector of channels
  ShortRule rule_;
  ShortNorm<Real> norm_;
  ShortScratch<Real> scratch_;
  AlignedVector<Real> arrays_, buffer_;  // buffer_: rows as they come, of dy, y or dx
  AlignedVector<int32_t> place_;
  std::vector<Real> context_;
  std::vector<uint8_t> sort_scratch_;
};

}  // namespace qact::core::cpu
