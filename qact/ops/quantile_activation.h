// The plain operator, torch.ops.qact.quantile_activation.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <tuple>

#include "qact/core/quantile.h"

namespace qact::ops {

// The quantile activation of x, (B, C, ...), each channel its own context; see
// core/quantile.h. Differentiable in x, with the context held fixed.
at::Tensor quantile_activation(const at::Tensor& x, int64_t levels = 100, double bound = 100.0,
                               double positive_share = 0.5, double bandwidth = 0.5,
                               std::string_view algorithm = "auto", bool quantised = true,
                               int64_t density_samples = 0, int64_t seed = 0);

// The same with f(x), if wanted; an empty tensor otherwise.
std::tuple<at::Tensor, at::Tensor> quantile_activation_forward(
    const at::Tensor& x, int64_t levels, double bound, double positive_share, double bandwidth,
    std::string_view algorithm, bool quantised, int64_t density_samples, int64_t seed,
    bool need_density);

// grad * density, an infinite value's 0 density winning over any gradient.
at::Tensor quantile_activation_backward(const at::Tensor& grad, const at::Tensor& density);

// The interpolated weighted quantiles of each channel, (C, levels), for values from
// outside the context.
at::Tensor quantiles(const at::Tensor& x, int64_t levels = 100, double bound = 100.0,
                     double positive_share = 0.5);

// What every device checks first.
core::Quantile check_activation(const at::Tensor& x, int64_t levels, double bound,
                                double positive_share, double bandwidth, std::string_view algorithm,
                                int64_t density_samples);
void check_activation_backward(const at::Tensor& grad, const at::Tensor& density);
core::Quantile check_quantiles(const at::Tensor& x, int64_t levels, double bound,
                               double positive_share);

}  // namespace qact::ops
