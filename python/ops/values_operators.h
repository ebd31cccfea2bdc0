// The operators on values and contexts, other than the plain activation, once for all devices: what
// cpu/device.h and cuda/device.h have.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <tuple>
#include <utility>

#include "python/ops/values.h"
#include "qact/core/context.h"

namespace qact::python {

template <class Device>
Tensor quantile_apply(const Tensor& x, const Tensor& quantiles, const MaybeTensor& scale,
                      const MaybeTensor& shift, const MaybeTensor& out_scale,
                      const MaybeTensor& out_shift, double bandwidth, bool quantised) {
  const ApplyVectors vectors = {scale, shift, out_scale, out_shift};
  check_apply("quantile_apply", x, quantiles, vectors, bandwidth);
  Device::check("quantile_apply", x);
  const typename Device::Guard guard(x);
  if (x.numel() == 0) return empty_as(x);
  const ApplyOperands operands(Device::flatten(x), quantiles, vectors);
  typename Device::Result y(x, operands.x);
  core::QuantileApply call;
  operands.fill(call);
  call.quantised = quantised;
  call.out_shift = operands.out_shift.vector;
  call.y = y.view();
  Device::run(call, x);
  return y.take();
}

template <class Device>
std::tuple<Tensor, Tensor> quantile_apply_backward(const Tensor& grad_y, const Tensor& x,
                                                   const Tensor& quantiles,
                                                   const MaybeTensor& scale,
                                                   const MaybeTensor& shift,
                                                   const MaybeTensor& out_scale, double bandwidth) {
  constexpr const char* kOp = "quantile_apply_backward";
  const MaybeTensor none;
  const ApplyVectors vectors = {scale, shift, out_scale, none};
  check_apply_backward(kOp, grad_y, x, quantiles, vectors, bandwidth);
  Device::check(kOp, x);
  const typename Device::Guard guard(x);
  if (x.numel() == 0) {
    Tensor affine = empty_beside(x, {4, x.size(1)}, table_type(x));
    return {empty_as(x), torch::stable::zero_(affine)};
  }
  const ApplyOperands operands(Device::flatten(x), quantiles, vectors);
  const FlatTensor grad = Device::flatten_alike(grad_y, operands.x);
  typename Device::Result grad_x(x, operands.x);
  core::QuantileApplyBackward call;
  operands.fill(call);
  call.bandwidth = bandwidth;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  Tensor affine = Device::run(call, x);
  return {grad_x.take(), std::move(affine)};
}

template <class Device>
Tensor context_build(const Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_context_build(x, scale, shift);
  Device::check("context_build", x);
  const typename Device::Guard guard(x);
  Tensor out = empty_beside(x, {x.size(1), core::kContextBins}, ScalarType::Long);
  if (x.numel() == 0) return torch::stable::zero_(out);
  const FlatTensor in = Device::flatten(x);
  const FlatVector a = flatten_vector(scale), b = flatten_vector(shift);
  const core::ContextBuild call = {in.shape, in.view, a.vector, b.vector,
                                   static_cast<int64_t*>(out.mutable_data_ptr())};
  Device::run(call, x);
  return out;
}

template <class Device>
Tensor context_blend(const Tensor& a, const Tensor& b, const MaybeTensor& batches,
                     std::optional<double> prior, std::optional<double> momentum, int64_t images,
                     int64_t n) {
  const BlendArguments arguments = {a, b, batches, prior, momentum, images, n};
  check_blend(arguments);
  const typename Device::Guard guard(a);
  double move = momentum.value_or(0);
  if (!prior && !momentum) move = 1.0 / static_cast<double>(Device::batches(*batches) + 1);
  const BlendCounts counts = blend_counts(arguments, move);
  const Tensor first = as_contiguous(a), second = as_contiguous(b);
  const Tensor out = empty_beside(a, {a.size(0), core::kContextBins}, ScalarType::Long);
  const core::ContextBlend call = {a.size(0), static_cast<const int64_t*>(first.const_data_ptr()),
                                   counts.a,  static_cast<const int64_t*>(second.const_data_ptr()),
                                   counts.b,  static_cast<int64_t*>(out.mutable_data_ptr())};
  Device::run(call, a);
  return out;
}

template <class Device>
Tensor context_quantiles(const Tensor& context, int64_t levels, double bound,
                         double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, {"context", context});
  const core::Quantile quantile =
      check_quantile(kOp, levels, bound, positive_share, /*bandwidth=*/1, /*algorithm=*/0);
  const typename Device::Guard guard(context);
  const Tensor rows = as_contiguous(context);
  const Tensor out = empty_beside(context, {context.size(0), levels}, ScalarType::Double);
  Device::context_quantiles(static_cast<const int64_t*>(rows.const_data_ptr()), quantile,
                            static_cast<double*>(out.mutable_data_ptr()), context);
  return out;
}

template <class Device, class Library>
void register_values(Library& m) {
  m.impl("quantile_apply", TORCH_BOX(&quantile_apply<Device>));
  m.impl("quantile_apply_backward", TORCH_BOX(&quantile_apply_backward<Device>));
  m.impl("context_build", TORCH_BOX(&context_build<Device>));
  m.impl("context_blend", TORCH_BOX(&context_blend<Device>));
  m.impl("context_quantiles", TORCH_BOX(&context_quantiles<Device>));
}

}  // namespace qact::python
