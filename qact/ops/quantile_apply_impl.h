// What the devices implement of quantile_apply.
#pragma once

#include <tuple>

#include "qact/ops/quantile_apply.h"

namespace qact::ops {

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
