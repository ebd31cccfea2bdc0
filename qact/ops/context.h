// Contexts as tensors, (C, 256) int64; see core/context.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace qact::ops {

// The context of z = scale * x + shift, x of (B, C, ...).
at::Tensor context_build(const at::Tensor& x, const std::optional<at::Tensor>& scale = {},
                         const std::optional<at::Tensor>& shift = {});

// a with an effective sample count of a_values plus b with b_values, in fixed point.
at::Tensor context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values);

// What an untrained layer starts with.
at::Tensor context_standard_normal(int64_t channels);

// The weighted quantiles, (C, levels) double.
at::Tensor context_quantiles(const at::Tensor& context, int64_t levels = 100, double bound = 100.0,
                             double positive_share = 0.5);

}  // namespace qact::ops
