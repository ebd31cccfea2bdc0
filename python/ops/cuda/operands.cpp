#include "python/ops/cuda/operands.h"

#include <torch/csrc/stable/ops.h>

namespace qact::python {

CudaStream cuda_stream(const Tensor& on, size_t scratch_bytes) {
  CudaStream out;
  if (scratch_bytes > 0) {
    out.scratch = empty_beside(on, {static_cast<int64_t>(scratch_bytes)}, ScalarType::Byte);
    out.stream.scratch = out.scratch->mutable_data_ptr();
  }
  STABLE_TORCH_ERROR_CODE_CHECK(
      aoti_torch_get_current_cuda_stream(on.get_device_index(), &out.stream.handle));
  return out;
}

void check_computed(const char* op, const Tensor& x) {
  QACT_EXPECT(type_of(x) != ScalarType::Double, "[", op,
              "] expected float32, bfloat16 or float16 on CUDA, got ", describe(x),
              ": convert it with x.float(), or move it to the CPU, which computes float64");
}

FlatTensor flatten_readable(const Tensor& x) {
  FlatTensor out = flatten_spatial(x);
  return core::cuda::reads(out.shape, out.view) ? out : flatten_spatial(as_contiguous(x));
}

FlatTensor flatten_alike(const Tensor& tensor, const FlatTensor& like) {
  FlatTensor out = flatten_spatial(tensor);
  if (core::cuda::alike(like.shape, out.view, like.view)) return out;
  Tensor copy = empty_with_strides_of(like.tensor);
  torch::stable::copy_(copy, tensor);
  return flatten_spatial(copy);
}

CudaResult::CudaResult(const Tensor& like, const FlatTensor& in)
    : result_(empty_as(like)), flat_{result_, {}, {}} {
  if (flattens(result_)) flat_ = flatten_spatial(result_);
  if (!flattens(result_) || !core::cuda::alike(in.shape, flat_.view, in.view)) {
    flat_ = flatten_spatial(empty_with_strides_of(in.tensor));
  }
}

CudaResult::CudaResult(const Tensor& like)
    : result_(empty_as(like)), flat_(flatten_readable(result_)) {}

Tensor CudaResult::take() {
  if (flat_.tensor.get() != result_.get()) torch::stable::copy_(result_, flat_.tensor);
  return result_;
}

int64_t read_batches(const Tensor& batches) {
  const Tensor here =
      torch::stable::to(batches, torch::stable::Device(torch::headeronly::DeviceType::CPU));
  return *static_cast<const int64_t*>(here.const_data_ptr());
}

}  // namespace qact::python
