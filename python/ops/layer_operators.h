// The fused layer's operators, once for all devices: what cpu/device.h and cuda/device.h have.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <tuple>
#include <utility>

#include "python/ops/layer.h"
#include "qact/core/context.h"

namespace qact::python {

template <class Device>
std::tuple<Tensor, Tensor, Tensor, Tensor> layer_forward(
    const Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, int64_t algorithm,
    int64_t image_channels, int64_t context_images, bool keep, bool track) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const LayerVectors vectors = {weight_in, bias_in, weight_out, bias_out};
  core::LayerForward call;
  call.quantile = check_layer(x, vectors, settings);
  Device::check("quantile_layer", x);
  const typename Device::Guard guard(x);
  typename Device::Result y(x);
  const FlatTensor in = Device::flatten_alike(x, y.flat());
  const LayerOperands operands(vectors);
  const int64_t rows = x.size(1) - image_channels;
  const core::Scope scope = settings.scope();
  const Kept sizes(x, scope);
  const Tensor kept = empty_beside(x, {keep ? sizes.bytes() : 0}, ScalarType::Byte);
  const bool scratch = Device::kWritesCodes && !keep;
  const Tensor codes = scratch ? empty_beside(x, {x.numel()}, ScalarType::Byte) : kept;
  const Tensor stats = empty_beside(x, {rows, core::kLayerStats}, ScalarType::Double);
  const Tensor context = empty_beside(x, {track ? rows : 0, core::kContextBins}, ScalarType::Long);
  call.eps = eps;
  call.scope = scope;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  operands.fill(call);
  auto* bytes = static_cast<uint8_t*>(codes.mutable_data_ptr());
  if (scratch) {
    call.code = bytes;
  } else if (kept.numel() > 0) {
    sizes.fill(call, bytes);
  }
  call.stats = static_cast<double*>(stats.mutable_data_ptr());
  if (track) call.context = static_cast<int64_t*>(context.mutable_data_ptr());
  Device::run(call, x);
  return {y.take(), kept, stats, context};
}

template <class Device>
std::tuple<Tensor, Tensor> layer_backward(const Tensor& grad_y, const MaybeTensor& x,
                                          const Tensor& kept, const Tensor& stats,
                                          const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                                          const MaybeTensor& weight_out, double eps, int64_t levels,
                                          double bound, double positive_share, double bandwidth,
                                          int64_t algorithm, int64_t image_channels,
                                          int64_t context_images) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const MaybeTensor none;
  const LayerVectors vectors = {weight_in, bias_in, weight_out, none};
  core::LayerBackward call;
  call.quantile = check_layer_backward(grad_y, vectors, settings);
  Device::check("quantile_layer_backward", grad_y);
  const core::Scope scope = settings.scope();
  const Kept sizes(grad_y, scope);
  check_kept(grad_y, x, kept, stats, settings, sizes.wanted());
  const typename Device::Guard guard(grad_y);
  const FlatTensor grad = Device::flatten(grad_y);  // on CUDA laid out as y, as the codes are
  const FlatTensor in = x ? Device::flatten_alike(*x, grad) : grad;
  typename Device::Result grad_x(x ? *x : grad_y, grad);
  const LayerOperands operands(vectors);
  call.eps = eps;
  call.scope = scope;
  call.shape = grad.shape;
  call.grad_y = grad.view;
  if (x) call.x = in.view;
  operands.fill(call);
  if (kept.numel() > 0) sizes.fill(call, static_cast<const uint8_t*>(kept.const_data_ptr()));
  call.grad_x = grad_x.view();
  Tensor affine = Device::run(call, grad_y);
  return {grad_x.take(), std::move(affine)};
}

template <class Device>
void layer_track(const Tensor& mean_in, const Tensor& var_in, const Tensor& mean_out,
                 const Tensor& var_out, const Tensor& context, const Tensor& batches,
                 const Tensor& stats, const Tensor& batch, std::optional<double> momentum,
                 int64_t n, int64_t context_images, int64_t images) {
  check_track({mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
               context_images, images});
  const typename Device::Guard guard(context);
  std::array<Tensor, 4> running = {mean_in, var_in, mean_out, var_out}, moved = running;
  for (Tensor& vector : moved) vector = Device::running(vector);
  const Tensor of = as_contiguous(stats), counts = as_contiguous(batch);
  core::LayerTrack call = track_call({moved[0], moved[1], moved[2], moved[3], context, batches, of,
                                      counts, momentum, n, context_images, images});
  call.stats = static_cast<const double*>(of.const_data_ptr());
  call.batch = static_cast<const int64_t*>(counts.const_data_ptr());
  call.momentum = momentum ? *momentum : 1.0 / static_cast<double>(Device::batches(batches) + 1);
  Device::run(call, context);
  for (size_t i = 0; i < running.size(); ++i) {
    if (moved[i].get() != running[i].get()) torch::stable::copy_(running[i], moved[i]);
  }
}

template <class Device, class Library>
void register_layer(Library& m) {
  m.impl("layer_forward", TORCH_BOX(&layer_forward<Device>));
  m.impl("layer_backward", TORCH_BOX(&layer_backward<Device>));
  m.impl("layer_track", TORCH_BOX(&layer_track<Device>));
}

}  // namespace qact::python
