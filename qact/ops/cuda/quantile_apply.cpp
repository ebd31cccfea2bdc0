#include "qact/ops/quantile_apply.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "qact/ops/cuda/operands.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_apply_impl.h"

namespace qact::ops {
namespace {

at::Tensor apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                 const MaybeTensor& shift, const MaybeTensor& out_scale,
                 const MaybeTensor& out_shift, double bandwidth, bool quantised) {
  check_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth);
  check_computed("quantile_apply", x);
  const c10::cuda::CUDAGuard guard(x.device());
  const ApplyOperands operands(flatten_readable(x), quantiles, scale, shift, out_scale);
  const FlatVector last = flatten_vector(out_shift);
  const CudaResult y(x, operands.x);
  core::QuantileApply call;
  operands.fill(call);
  call.quantised = quantised;
  call.out_shift = last.vector;
  call.y = y.view();
  core::cuda::quantile_apply(call, cuda_stream(x).stream);
  return y.take();
}

std::tuple<at::Tensor, at::Tensor> apply_backward(const at::Tensor& grad_y, const at::Tensor& x,
                                                  const at::Tensor& quantiles,
                                                  const MaybeTensor& scale,
                                                  const MaybeTensor& shift,
                                                  const MaybeTensor& out_scale, double bandwidth) {
  check_apply_backward(grad_y, x, quantiles, scale, shift, out_scale, bandwidth);
  check_computed("quantile_apply_backward", x);
  const c10::cuda::CUDAGuard guard(x.device());
  const ApplyOperands operands(flatten_readable(x), quantiles, scale, shift, out_scale);
  const FlatTensor grad = flatten_alike(grad_y, operands.x);
  const CudaResult grad_x(x, operands.x);
  at::Tensor affine = empty_beside(x, {4, x.size(1)}, at::kFloat);
  core::QuantileApplyBackward call;
  operands.fill(call);
  call.bandwidth = bandwidth;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  const CudaStream on = cuda_stream(x, core::cuda::quantile_apply_backward_scratch(call));
  core::cuda::quantile_apply_backward(call, affine.data_ptr<float>(), on.stream);
  return {grad_x.take(), affine};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("quantile_apply", apply);
  m.impl("_quantile_apply_backward", apply_backward);
}

}  // namespace qact::ops
