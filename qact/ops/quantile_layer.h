// The fused layer, torch.ops.qact.quantile_layer: norm, quantile activation, norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "qact/core/quantile.h"

namespace qact::ops {

// (y, stats, context) of x, (B, C, ...), with the batch's own statistics and context.
// Differentiable in x and the affine parameters, through y.
//   stats    (C, 8) double: mean and biased variance of x, of the activation, and how the
//            backward pass finds the density of a value
//   context  (C, 256) int64, the batch's kept context (core/context.h), if track; else (0)
std::tuple<at::Tensor, at::Tensor, at::Tensor> quantile_layer(
    const at::Tensor& x, const std::optional<at::Tensor>& weight_in,
    const std::optional<at::Tensor>& bias_in, const std::optional<at::Tensor>& weight_out,
    const std::optional<at::Tensor>& bias_out, double eps = 1e-5, int64_t levels = 100,
    double bound = 100.0, double positive_share = 0.5, double bandwidth = 0.5,
    std::string_view algorithm = "auto", bool track = false);

// (y, level, density, stats, context). level is a byte per value, (C, B * spatial), in
// the device's own order; density is (C, 256) int32, or (0) if not wanted.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> quantile_layer_forward(
    const at::Tensor& x, const std::optional<at::Tensor>& weight_in,
    const std::optional<at::Tensor>& bias_in, const std::optional<at::Tensor>& weight_out,
    const std::optional<at::Tensor>& bias_out, double eps, int64_t levels, double bound,
    double positive_share, double bandwidth, std::string_view algorithm, bool track,
    bool need_density);

// (grad_x, grad_affine); grad_affine is (4, C), float or double as tables are: weight_in, bias_in,
// weight_out, bias_out.
std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
    const at::Tensor& density, const at::Tensor& stats, const std::optional<at::Tensor>& weight_in,
    const std::optional<at::Tensor>& weight_out, double eps, int64_t levels);

// What every device checks first; the levels of the fused layer fit a byte.
core::Quantile check_layer(const at::Tensor& x, const std::optional<at::Tensor>& weight_in,
                           const std::optional<at::Tensor>& bias_in,
                           const std::optional<at::Tensor>& weight_out,
                           const std::optional<at::Tensor>& bias_out, double eps, int64_t levels,
                           double bound, double positive_share, double bandwidth,
                           std::string_view algorithm);
void check_layer_backward(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
                          const at::Tensor& density, const at::Tensor& stats,
                          const std::optional<at::Tensor>& weight_in,
                          const std::optional<at::Tensor>& weight_out, double eps, int64_t levels);

}  // namespace qact::ops
