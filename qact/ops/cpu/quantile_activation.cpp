#include "qact/ops/quantile_activation.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <optional>

#include "qact/ops/flatten.h"
#include "qact/ops/quantile_activation_impl.h"

namespace qact::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, const ActivationOptions& options,
                                           bool need_density) {
  core::ActivationForward call;
  call.quantile = check_activation(x, options);
  call.quantile.quantised = options.quantised;
  call.quantile.density_samples = options.density_samples;
  call.quantile.seed = static_cast<uint64_t>(options.seed);
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor y(x);
  std::optional<ResultTensor> density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  if (need_density) call.density = density.emplace(x).view();
  core::activation_forward(call, cpu_execution());
  return {y.take(), density ? density->take() : at::empty({0}, x.options())};
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& density) {
  check_activation_backward(grad, density);
  at::Tensor out = at::empty_like(grad);
  return at::where_out(out, density == 0, at::zeros({}, grad.options()), grad * density);
}

at::Tensor exact_quantiles(const at::Tensor& x, int64_t levels, double bound,
                           double positive_share) {
  core::Quantiles call;
  call.quantile = check_quantiles(x, levels, bound, positive_share);
  const FlatTensor in = flatten_spatial(x);
  call.shape = in.shape;
  call.x = in.view;
  at::Tensor out = at::empty({x.size(1), levels}, x.options().dtype(at::kDouble));
  call.quantiles = out.data_ptr<double>();
  core::quantiles(call, cpu_execution());
  return out.to(table_type(x));
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("_quantile_activation_forward", activation_entry<forward, bool>);
  m.impl("_quantile_activation_backward", backward);
  m.impl("quantiles", exact_quantiles);
}

}  // namespace qact::ops
