// What the operators do on CUDA alone: layer_operators.h and values_operators.h have the rest.
#pragma once

#include <torch/csrc/stable/ops.h>

#include "python/ops/cuda/operands.h"
#include "python/ops/layer.h"

namespace qact::python {

struct Cuda {
  static constexpr bool kWritesCodes = false;
  struct Guard : torch::stable::accelerator::DeviceGuard {
    explicit Guard(const Tensor& x) : DeviceGuard(x.get_device_index()) {}
  };
  using Result = CudaResult;

  static void check(const char* op, const Tensor& x) { check_computed(op, x); }
  static FlatTensor flatten(const Tensor& x) { return flatten_readable(x); }
  static FlatTensor flatten_alike(const Tensor& x, const FlatTensor& like) {
    return python::flatten_alike(x, like);
  }
  // The kernel moves float32.
  static Tensor running(const Tensor& vector) {
    return type_of(vector) == ScalarType::Float ? vector
                                                : torch::stable::to(vector, ScalarType::Float);
  }
  static int64_t batches(const Tensor& count) { return read_batches(count); }

  static void run(const core::LayerForward& call, const Tensor& x) {
    const CudaStream on = cuda_stream(x, core::cuda::layer_forward_scratch(call));
    core::cuda::layer_forward(call, on.stream);
  }
  static Tensor run(const core::LayerBackward& call, const Tensor& x) {
    const Tensor affine = empty_beside(x, {4, x.size(1)}, ScalarType::Float);
    const CudaStream on = cuda_stream(x, core::cuda::layer_backward_scratch(call));
    core::cuda::layer_backward(call, static_cast<float*>(affine.mutable_data_ptr()), on.stream);
    return affine;
  }
  static void run(const core::LayerTrack& call, const Tensor& context) {
    core::cuda::layer_track(call, cuda_stream(context).stream);
  }
  static void run(const core::QuantileApply& call, const Tensor& x) {
    core::cuda::quantile_apply(call, cuda_stream(x).stream);
  }
  static Tensor run(const core::QuantileApplyBackward& call, const Tensor& x) {
    const Tensor affine = empty_beside(x, {4, x.size(1)}, ScalarType::Float);
    const CudaStream on = cuda_stream(x, core::cuda::quantile_apply_backward_scratch(call));
    core::cuda::quantile_apply_backward(call, static_cast<float*>(affine.mutable_data_ptr()),
                                        on.stream);
    return affine;
  }
  static void run(const core::ContextBuild& call, const Tensor& x) {
    core::cuda::context_build(call, cuda_stream(x).stream);
  }
  static void run(const core::ContextBlend& call, const Tensor& context) {
    core::cuda::context_blend(call, cuda_stream(context).stream);
  }
  static void context_quantiles(const int64_t* counts, const core::Quantile& quantile,
                                double* found, const Tensor& context) {
    core::cuda::context_quantiles(counts, context.size(0), quantile, found,
                                  cuda_stream(context).stream);
  }
};

}  // namespace qact::python
