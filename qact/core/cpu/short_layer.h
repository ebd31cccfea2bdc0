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

// For any number of calls that have one context per channel, all as long as the longest or shorter.
template <class Real>
class ShortLayer {
 public:
  explicit ShortLayer(Simd simd) : kernels_(tensor_kernels<Real>(simd)) {}

  void forward(const LayerForward& call);
  void backward(const LayerBackward& call);

 private:
  static constexpr int64_t kN = kLanes<Real>;

  template <class Call>
  void start(const Call& call);
  // Those of some channels between a tensor and rows of values.
  void load(const View& view, const Shape& shape, int64_t first, AlignedVector<Real>& rows);
  void store(const AlignedVector<Real>& rows, const Shape& shape, int64_t first, const View& view);
  template <class Call>
  ShortAffine<Real> affine(const Call& call, int64_t first) const;

  const TensorKernels<Real>& kernels_;
  ShortRule rule_;
  ShortNorm<Real> norm_;
  AlignedVector<Real> strips_, x_, z_, y_, dy_;
  AlignedVector<ShortRoom<Real>> room_;
  std::vector<Real> context_;
  std::vector<uint8_t> scratch_;
};

}  // namespace qact::core::cpu
