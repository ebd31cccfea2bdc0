// Tensors as the CUDA kernels take them, and the stream they run on.
#pragma once

#include <torch/csrc/stable/accelerator.h>

#include <optional>

#include "python/ops/tensors.h"
#include "qact/core/cuda/cuda.h"

namespace qact::python {

// The current stream of a tensor's device, with scratch memory. The allocator hands that memory to
// no other stream before what is queued here has used it.
struct CudaStream {
  std::optional<Tensor> scratch;
  core::cuda::Stream stream;
};
CudaStream cuda_stream(const Tensor& on, size_t scratch_bytes = 0);

// The kernels compute in float32: float64 is refused, since its digits would be lost in silence.
void check_computed(const char* op, const Tensor& x);

// x in an order that kernels read, which is its own unless it is neither NCHW nor channels_last.
FlatTensor flatten_readable(const Tensor& x);

// A tensor in the order of `like`; copied if it lies otherwise.
FlatTensor flatten_alike(const Tensor& tensor, const FlatTensor& like);

// A result with the layout that empty_like gives; written in the order of `in`.
class CudaResult {
 public:
  CudaResult(const Tensor& like, const FlatTensor& in);
  explicit CudaResult(const Tensor& like);  // in its own order, where that is readable
  const FlatTensor& flat() const { return flat_; }
  const core::View& view() const { return flat_.view; }
  Tensor take();

 private:
  Tensor result_;
  FlatTensor flat_;
};

// How many batches a layer has seen, read from the device: it waits for what is queued there.
int64_t read_batches(const Tensor& batches);

}  // namespace qact::python
