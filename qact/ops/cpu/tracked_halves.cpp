#include "qact/ops/tracked_halves.h"

#include <ATen/ATen.h>

#include "qact/ops/autograd/tangents.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_apply_impl.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {

at::Tensor tracked_halves(const at::Tensor& x, const LayerAffine& affine,
                          const LayerOptions& options, const GivenQuantiles& given,
                          bool quantised) {
  const auto& [weight_in, bias_in, weight_out, bias_out] = affine;
  refuse_tangents("tracked_halves", x, weight_in, bias_in, weight_out, bias_out);
  const int64_t first = options.scope.image_channels;
  core::LayerForward images;
  images.quantile = check_layer(x, affine, options);
  TORCH_CHECK(x.is_cpu(), "[tracked_halves] expected x on cpu, got ", x.device());
  const at::Tensor rest = x.narrow(1, first, x.size(1) - first);
  check_apply(rest, given.quantiles, given.scale, given.shift, given.out_scale, given.out_shift,
              options.quantile.bandwidth);
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor y(x);
  LayerOperands of_images(x, affine, options, /*keep=*/false);
  of_images.fill(images);
  images.eps = options.eps;
  images.scope = {.image_channels = first};
  images.shape = in.shape;
  images.shape.channels = first;
  images.x = in.view;
  images.y = y.view();
  core::layer_forward(images, cpu_execution());

  const ApplyOperands of_rest({in.tensor, in.shape, in.view.from(0, first)}, given.quantiles,
                              given.scale, given.shift, given.out_scale);
  const FlatVector last = flatten_vector(given.out_shift);
  core::QuantileApply others;
  of_rest.fill(others);
  others.shape.channels = rest.size(1);
  others.quantised = quantised;
  others.out_shift = last.vector;
  others.y = y.view().from(0, first);
  core::quantile_apply(others, cpu_execution());
  return y.take();
}

}  // namespace qact::ops
