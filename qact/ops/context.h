// Kept contexts as tensors, (C, 256) int64 (core/context.h), and values seen through them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace qact::ops {

// The context of z = scale * x + shift, x of (B, C, ...).
at::Tensor context_build(const at::Tensor& x, const std::optional<at::Tensor>& scale = {},
                         const std::optional<at::Tensor>& shift = {});

// a worth a_values values plus b worth b_values, in fixed point.
at::Tensor context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values);

// What an untrained layer is given.
at::Tensor context_standard_normal(int64_t channels);

// The weighted quantiles, (C, levels) double.
at::Tensor context_quantiles(const at::Tensor& context, int64_t levels = 100,
                             double bound = 100.0, double positive_share = 0.5);

// y = out_scale * activation(scale * x + shift) + out_shift, the activation by given
// quantiles, (C, levels), ascending. Differentiable in x and the four vectors, with
// `bandwidth` for the density of the quantiles.
at::Tensor quantile_apply(const at::Tensor& x, const at::Tensor& quantiles,
                          const std::optional<at::Tensor>& scale = {},
                          const std::optional<at::Tensor>& shift = {},
                          const std::optional<at::Tensor>& out_scale = {},
                          const std::optional<at::Tensor>& out_shift = {},
                          double bandwidth = 0.5, bool quantised = true);

// (grad_x, grad_affine); grad_affine is (4, C) double: scale, shift, out_scale, out_shift.
std::tuple<at::Tensor, at::Tensor> quantile_apply_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& quantiles,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift,
    const std::optional<at::Tensor>& out_scale, double bandwidth);

}  // namespace qact::ops
