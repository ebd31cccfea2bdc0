#include "qact/ops/cuda/operands.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

namespace qact::ops {

CudaStream cuda_stream(const at::Tensor& on, size_t scratch_bytes) {
  CudaStream out;
  if (scratch_bytes > 0) {
    out.scratch = c10::cuda::CUDACachingAllocator::get()->allocate(scratch_bytes);
    out.stream.scratch = out.scratch.get();
  }
  out.stream.handle = c10::cuda::getCurrentCUDAStream(on.device().index()).stream();
  return out;
}

void check_computed(const char* op, const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() != at::kDouble, "[", op,
              "] expected float32, bfloat16 or float16 on CUDA, got ", describe(x),
              ": convert it with x.to(float32), or move it to the CPU, which computes float64");
}

FlatTensor flatten_readable(const at::Tensor& x) {
  FlatTensor out = flatten_spatial(x);
  return core::cuda::reads(out.shape, out.view) ? out : flatten_spatial(x.contiguous());
}

FlatTensor flatten_alike(const at::Tensor& tensor, const FlatTensor& like) {
  FlatTensor out = flatten_spatial(tensor);
  if (core::cuda::alike(like.shape, out.view, like.view)) return out;
  at::Tensor copy = at::empty_strided(like.tensor.sizes(), like.tensor.strides(), tensor.options());
  return flatten_spatial(copy.copy_(tensor));
}

CudaResult::CudaResult(const at::Tensor& like, const FlatTensor& in) : result_(empty_as(like)) {
  if (flattens(result_)) flat_ = flatten_spatial(result_);
  if (!flattens(result_) || !core::cuda::alike(in.shape, flat_.view, in.view)) {
    flat_ =
        flatten_spatial(at::empty_strided(in.tensor.sizes(), in.tensor.strides(), like.options()));
  }
}

CudaResult::CudaResult(const at::Tensor& like)
    : result_(empty_as(like)), flat_(flatten_readable(result_)) {}

at::Tensor CudaResult::take() const {
  if (!flat_.tensor.is_same(result_)) result_.copy_(flat_.tensor);
  return result_;
}

}  // namespace qact::ops
