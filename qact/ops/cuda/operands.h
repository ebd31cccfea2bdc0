// Tensors as the CUDA kernels take them, and the stream they run on.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/core/cuda/cuda.h"
#include "qact/ops/flatten.h"

namespace qact::ops {

// The current stream of a tensor's device, with scratch memory that lives as long as the
// allocator knows it is in use there.
struct CudaStream {
  at::DataPtr scratch;
  core::cuda::Stream stream;
};
CudaStream cuda_stream(const at::Tensor& on, size_t scratch_bytes = 0);

// The kernels compute in float32: float64 is refused, since its digits would be lost in silence.
void check_computed(const char* op, const at::Tensor& x);

// x in an order that kernels read, which is its own unless it is neither NCHW nor
// channels_last.
FlatTensor flatten_readable(const at::Tensor& x);

// A tensor in the order of `like`; copied if it lies otherwise.
FlatTensor flatten_alike(const at::Tensor& tensor, const FlatTensor& like);

// A result with the layout that empty_like gives; written in the order of `in`, or its own where
// that is readable.
class CudaResult {
 public:
  CudaResult(const at::Tensor& like, const FlatTensor& in);
  explicit CudaResult(const at::Tensor& like);
  const FlatTensor& flat() const { return flat_; }
  const core::View& view() const { return flat_.view; }
  at::Tensor take() const;

 private:
  at::Tensor result_;
  FlatTensor flat_;
};

}  // namespace qact::ops
