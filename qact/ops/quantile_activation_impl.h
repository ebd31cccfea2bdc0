// What the devices implement of quantile_activation, and how the dispatcher calls them.
#pragma once

#include <tuple>

#include "qact/core/quantile.h"
#include "qact/ops/quantile_activation.h"

namespace qact::ops {

// (y, f(x)) of x; f(x) is an empty tensor unless it is needed.
std::tuple<at::Tensor, at::Tensor> quantile_activation_forward(const at::Tensor& x,
                                                               const ActivationOptions& options,
                                                               bool need_density);

// grad * density, an infinite value's 0 density winning over any gradient.
at::Tensor quantile_activation_backward(const at::Tensor& grad, const at::Tensor& density);

// What every device checks first.
core::Quantile check_activation(const at::Tensor& x, const ActivationOptions& options);
void check_activation_backward(const at::Tensor& grad, const at::Tensor& density);
core::Quantile check_quantiles(const at::Tensor& x, int64_t levels, double bound,
                               double positive_share);

// Kernels take the options as one struct, the dispatcher hands over the schema's arguments one by
// one: m.impl(name, activation_entry<kernel>). `More` are the types of arguments after the options.
template <auto kernel, class... More>
auto activation_entry(const at::Tensor& x, int64_t levels, double bound, double positive_share,
                      double bandwidth, std::string_view algorithm, bool quantised,
                      int64_t density_samples, int64_t seed, More... more) {
  return kernel(
      x,
      ActivationOptions{
          {levels, bound, positive_share, bandwidth, algorithm}, quantised, density_samples, seed},
      more...);
}

}  // namespace qact::ops
