// Kept contexts as tensors, (C, 256) int64; see core/context.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

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
at::Tensor context_quantiles(const at::Tensor& context, int64_t levels = 100, double bound = 100.0,
                             double positive_share = 0.5);

// What every device checks first.
void check_context_build(const at::Tensor& x, const std::optional<at::Tensor>& scale,
                         const std::optional<at::Tensor>& shift);
void check_context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values);
void check_context(const char* op, const char* name, const at::Tensor& context);
// How many values a context is to be worth.
void check_effective_count(const char* op, double values);

}  // namespace qact::ops
