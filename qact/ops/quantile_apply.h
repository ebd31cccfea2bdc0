// Values ranked by given quantiles: those of a running context, or of other data.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace qact::ops {

// y = out_scale * activation(scale * x + shift) + out_shift, the activation by given
// quantiles, (C, levels), ascending. Differentiable in x and the four vectors, with
// `bandwidth` for the density of the quantiles.
at::Tensor quantile_apply(const at::Tensor& x, const at::Tensor& quantiles,
                          const std::optional<at::Tensor>& scale = {},
                          const std::optional<at::Tensor>& shift = {},
                          const std::optional<at::Tensor>& out_scale = {},
                          const std::optional<at::Tensor>& out_shift = {}, double bandwidth = 0.5,
                          bool quantised = true);

}  // namespace qact::ops
