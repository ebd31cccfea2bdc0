// Values seen through given quantiles: those of a kept context, or of other data.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

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

// (grad_x, grad_affine); grad_affine is (4, C), float or double as tables are: scale, shift,
// out_scale, out_shift.
std::tuple<at::Tensor, at::Tensor> quantile_apply_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& quantiles,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift,
    const std::optional<at::Tensor>& out_scale, double bandwidth);

// What every device checks first.
void check_apply(const at::Tensor& x, const at::Tensor& quantiles,
                 const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift,
                 const std::optional<at::Tensor>& out_scale,
                 const std::optional<at::Tensor>& out_shift, double bandwidth);
void check_apply_backward(const at::Tensor& grad_y, const at::Tensor& x,
                          const at::Tensor& quantiles, const std::optional<at::Tensor>& scale,
                          const std::optional<at::Tensor>& shift,
                          const std::optional<at::Tensor>& out_scale, double bandwidth);

}  // namespace qact::ops
