#include "qact/ops/quantile_apply.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/cpu/affine.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_apply_impl.h"

namespace qact::ops {
namespace {

at::Tensor cpu_apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                     const MaybeTensor& shift, const MaybeTensor& out_scale,
                     const MaybeTensor& out_shift, double bandwidth, bool quantised) {
  check_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth);
  const ApplyOperands operands(flatten_spatial(x), quantiles, scale, shift, out_scale);
  const FlatVector last = flatten_vector(out_shift);
  const ResultTensor y(x);
  core::QuantileApply call;
  operands.fill(call);
  call.quantised = quantised;
  call.out_shift = last.vector;
  call.y = y.view();
  core::quantile_apply(call, cpu_execution());
  return y.take();
}

std::tuple<at::Tensor, at::Tensor> apply_backward(const at::Tensor& grad_y, const at::Tensor& x,
                                                  const at::Tensor& quantiles,
                                                  const MaybeTensor& scale,
                                                  const MaybeTensor& shift,
                                                  const MaybeTensor& out_scale, double bandwidth) {
  check_apply_backward(grad_y, x, quantiles, scale, shift, out_scale, bandwidth);
  const ApplyOperands operands(flatten_spatial(x), quantiles, scale, shift, out_scale);
  const FlatTensor grad = flatten_spatial(grad_y);
  const ResultTensor grad_x(x);
  std::vector<double> affine(4 * x.size(1));
  core::QuantileApplyBackward call;
  operands.fill(call);
  call.bandwidth = bandwidth;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  call.grad_affine = affine.data();
  core::quantile_apply_backward(call, cpu_execution());
  return {grad_x.take(), affine_rows(affine, x)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_apply", cpu_apply);
  m.impl("_quantile_apply_backward", apply_backward);
}

}  // namespace qact::ops
