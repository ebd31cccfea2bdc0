// Inference with the first channels ranked in their image and the others by given quantiles.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "qact/ops/quantile_layer.h"

namespace qact::ops {

// The others: z = scale * x + shift, ranked among the quantiles, one row for each of them.
struct GivenQuantiles {
  at::Tensor quantiles;
  std::optional<at::Tensor> scale = {}, shift = {}, out_scale = {}, out_shift = {};
};

// What quantile_layer gives of the first options.scope.image_channels channels, and quantile_apply
// of the others, written to one output. For tensors on the CPU, without gradients.
at::Tensor tracked_halves(const at::Tensor& x, const LayerAffine& affine,
                          const LayerOptions& options, const GivenQuantiles& given, bool quantised);

}  // namespace qact::ops
