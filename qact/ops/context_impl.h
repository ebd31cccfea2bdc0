// What the devices implement of the operators on contexts.
#pragma once

#include "qact/ops/context.h"

namespace qact::ops {

// What every device checks first.
void check_context_build(const at::Tensor& x, const std::optional<at::Tensor>& scale,
                         const std::optional<at::Tensor>& shift);
void check_context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values);
void check_context(const char* op, const char* name, const at::Tensor& context);
// Of a context: how many values it is to count as.
void check_effective_count(const char* op, double values);

}  // namespace qact::ops
