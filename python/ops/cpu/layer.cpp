#include "python/ops/layer.h"

#include <torch/csrc/stable/library.h>

#include <memory>
#include <vector>

#include "python/ops/cpu/affine.h"
#include "python/ops/execution.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

std::tuple<Tensor, Tensor, Tensor, Tensor> layer_forward(
    Tensor x, MaybeTensor weight_in, MaybeTensor bias_in, MaybeTensor weight_out,
    MaybeTensor bias_out, double eps, int64_t levels, double bound, double positive_share,
    double bandwidth, int64_t algorithm, int64_t image_channels, int64_t context_images, bool keep,
    bool track) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const LayerVectors vectors = {weight_in, bias_in, weight_out, bias_out};
  core::LayerForward call;
  call.quantile = check_layer(x, vectors, settings);
  const FlatTensor in = flatten_spatial(x);
  ResultTensor y(x);
  const LayerOperands operands(vectors);
  const int64_t rows = x.size(1) - image_channels;
  const Kept sizes(x, settings.scope());
  Tensor kept = empty_beside(x, {keep ? sizes.bytes() : 0}, ScalarType::Byte);
  std::unique_ptr<uint8_t[]> scratch;  // codes are written in any case
  if (!keep) scratch = std::make_unique_for_overwrite<uint8_t[]>(x.numel());
  Tensor stats = empty_beside(x, {rows, core::kLayerStats}, ScalarType::Double);
  Tensor context = empty_beside(x, {track ? rows : 0, core::kContextBins}, ScalarType::Long);
  call.eps = eps;
  call.scope = settings.scope();
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  operands.fill(call);
  if (keep) {
    sizes.fill(call, static_cast<uint8_t*>(kept.mutable_data_ptr()));
  } else {
    call.code = scratch.get();
  }
  call.stats = static_cast<double*>(stats.mutable_data_ptr());
  if (track) call.context = static_cast<int64_t*>(context.mutable_data_ptr());
  core::layer_forward(call, cpu_execution());
  return {y.take(), std::move(kept), std::move(stats), std::move(context)};
}

std::tuple<Tensor, Tensor> layer_backward(Tensor grad_y, MaybeTensor x, Tensor kept, Tensor stats,
                                          MaybeTensor weight_in, MaybeTensor bias_in,
                                          MaybeTensor weight_out, double eps, int64_t levels,
                                          double bound, double positive_share, double bandwidth,
                                          int64_t algorithm, int64_t image_channels,
                                          int64_t context_images) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const MaybeTensor none;
  const LayerVectors vectors = {weight_in, bias_in, weight_out, none};
  core::LayerBackward call;
  call.quantile = check_layer_backward(grad_y, vectors, settings);
  const Kept sizes(grad_y, settings.scope());
  check_kept(grad_y, x, kept, stats, settings, sizes.wanted());
  const FlatTensor grad = flatten_spatial(grad_y), in = flatten_spatial(x ? *x : grad_y);
  ResultTensor grad_x(x ? *x : grad_y);
  const LayerOperands operands(vectors);
  const Tensor statistics = as_contiguous(stats);
  std::vector<double> affine(4 * grad_y.size(1));
  call.eps = eps;
  call.scope = settings.scope();
  call.shape = grad.shape;
  call.grad_y = grad.view;
  if (x) call.x = in.view;
  operands.fill(call);
  sizes.fill(call, static_cast<const uint8_t*>(kept.const_data_ptr()));
  call.stats = static_cast<const double*>(statistics.const_data_ptr());
  call.grad_x = grad_x.view();
  call.grad_affine = affine.data();
  core::layer_backward(call, cpu_execution());
  return {grad_x.take(), affine_rows(affine, grad_y)};
}

void layer_track(Tensor mean_in, Tensor var_in, Tensor mean_out, Tensor var_out, Tensor context,
                 Tensor batches, Tensor stats, Tensor batch, std::optional<double> momentum,
                 int64_t n, int64_t context_images, int64_t images) {
  const TrackArguments arguments = {mean_in, var_in, mean_out, var_out, context,        batches,
                                    stats,   batch,  momentum, n,       context_images, images};
  check_track(arguments);
  const Tensor moved = as_contiguous(stats);
  const Tensor counts = as_contiguous(batch);
  core::LayerTrack call = track_call(arguments);
  call.stats = static_cast<const double*>(moved.const_data_ptr());
  call.batch = static_cast<const int64_t*>(counts.const_data_ptr());
  call.momentum = momentum ? *momentum : 1.0 / static_cast<double>(*call.batches + 1);
  core::layer_track(call, cpu_execution());
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CPU, m) {
  m.impl("layer_forward", TORCH_BOX(&layer_forward));
  m.impl("layer_backward", TORCH_BOX(&layer_backward));
  m.impl("layer_track", TORCH_BOX(&layer_track));
}

}  // namespace qact::python
