// The plain operator, torch.ops.qact.quantile_activation.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/ops/options.h"

namespace qact::ops {

struct ActivationOptions {
  QuantileOptions quantile = {};
  bool quantised = true;  // false: the cumulative weight F(x) instead of level / levels
  // The paper's density: that of so many points drawn from the context, by `seed`. 0: all of it.
  int64_t density_samples = 0;
  int64_t seed = 0;
};

// The quantile activation of x, (B, C, ...), each channel its own context; see
// core/quantile.h. Differentiable in x, with the context held fixed.
at::Tensor quantile_activation(const at::Tensor& x, const ActivationOptions& options = {});

// The interpolated weighted quantiles of each channel, (C, levels), for values from
// outside the context.
at::Tensor quantiles(const at::Tensor& x, int64_t levels = 100, double bound = 100.0,
                     double positive_share = 0.5);

}  // namespace qact::ops
