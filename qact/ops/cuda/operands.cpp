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

Folded fold_readable(const at::Tensor& x) {
  Folded out = fold(x);
  return core::cuda::reads(out.shape, out.view) ? out : fold(x.contiguous());
}

Folded fold_alike(const at::Tensor& tensor, const Folded& like) {
  Folded out = fold(tensor);
  if (core::cuda::alike(like.shape, out.view, like.view)) return out;
  at::Tensor copy = at::empty_strided(like.tensor.sizes(), like.tensor.strides(), tensor.options());
  return fold(copy.copy_(tensor));
}

CudaOutput::CudaOutput(const at::Tensor& like, const Folded& in) : result_(empty_as(like)) {
  if (folds(result_)) folded_ = fold(result_);
  if (!folds(result_) || !core::cuda::alike(in.shape, folded_.view, in.view)) {
    folded_ = fold(at::empty_strided(in.tensor.sizes(), in.tensor.strides(), like.options()));
  }
}

at::Tensor CudaOutput::take() const {
  if (!folded_.tensor.is_same(result_)) result_.copy_(folded_.tensor);
  return result_;
}

}  // namespace qact::ops
