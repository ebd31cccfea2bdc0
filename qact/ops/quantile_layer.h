// The fused layer, torch.ops.qact.quantile_layer: norm, quantile activation, norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "qact/core/quantile.h"
#include "qact/ops/options.h"

namespace qact::ops {

// The affine parameters of both norms, one number per channel; none: 1 and 0.
struct LayerAffine {
  std::optional<at::Tensor> weight_in = {}, bias_in = {}, weight_out = {}, bias_out = {};
};

struct LayerOptions {
  QuantileOptions quantile = {};  // at most 255 levels
  double eps = 1e-5;              // of both norms
  bool track = false;             // also return the batch's context
  core::Scope scope = {};         // image_channels and context_images in Python
};

// (y, stats, context) of x, (B, C, ...), with the statistics and contexts of x itself, in the scope
// that the options say. Differentiable in x and the affine parameters, through y. The rows are the
// channels that are not ranked in their image: an image's context is of no use to others.
//   stats    (rows, 8) double: mean and biased variance of x and of the activation; the other four
//            are of use to the library alone
//   context  (rows, 256) int64, the batch's context (core/context.h), if track; else (0)
std::tuple<at::Tensor, at::Tensor, at::Tensor> quantile_layer(const at::Tensor& x,
                                                              const LayerAffine& affine = {},
                                                              const LayerOptions& options = {});

}  // namespace qact::ops
