#include "qact/ops/quantile_activation.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/checks.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_activation_impl.h"

namespace qact::ops {

namespace {

// The signatures of the schemas.
using ActivationSchema = at::Tensor(const at::Tensor&, int64_t, double, double, double,
                                    std::string_view, bool, int64_t, int64_t);
using ActivationForwardSchema = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, int64_t,
                                                                   double, double, double,
                                                                   std::string_view, bool, int64_t,
                                                                   int64_t, bool);

}  // namespace

at::Tensor quantile_activation(const at::Tensor& x, const ActivationOptions& options) {
  static const auto op = registered<ActivationSchema>("qact::quantile_activation");
  const QuantileOptions& q = options.quantile;
  return op.call(x, q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm,
                 options.quantised, options.density_samples, options.seed);
}

std::tuple<at::Tensor, at::Tensor> quantile_activation_forward(const at::Tensor& x,
                                                               const ActivationOptions& options,
                                                               bool need_density) {
  static const auto op = registered<ActivationForwardSchema>("qact::_quantile_activation_forward");
  const QuantileOptions& q = options.quantile;
  return op.call(x, q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm,
                 options.quantised, options.density_samples, options.seed, need_density);
}

at::Tensor quantile_activation_backward(const at::Tensor& grad, const at::Tensor& density) {
  static const auto op =
      registered<decltype(quantile_activation_backward)>("qact::_quantile_activation_backward");
  return op.call(grad, density);
}

at::Tensor quantiles(const at::Tensor& x, int64_t levels, double bound, double positive_share) {
  static const auto op = registered<decltype(quantiles)>("qact::quantiles");
  return op.call(x, levels, bound, positive_share);
}

namespace {

// Without gradients the activation is the first half of its forward operator, on every
// device.
at::Tensor activation_without_gradient(const at::Tensor& x, const ActivationOptions& options) {
  return std::get<0>(quantile_activation_forward(x, options, /*need_density=*/false));
}

std::tuple<at::Tensor, at::Tensor> forward_meta(const at::Tensor& x,
                                                const ActivationOptions& options,
                                                bool need_density) {
  check_activation(x, options);
  return {at::empty_like(x), need_density ? at::empty_like(x) : at::empty({0}, x.options())};
}

at::Tensor backward_meta(const at::Tensor& grad, const at::Tensor& density) {
  check_activation_backward(grad, density);
  return at::empty_like(grad);
}

at::Tensor quantiles_meta(const at::Tensor& x, int64_t levels, double bound,
                          double positive_share) {
  check_quantiles(x, levels, bound, positive_share);
  return at::empty_symint({x.sym_size(1), levels}, x.options().dtype(table_type(x)));
}

}  // namespace

core::Quantile check_activation(const at::Tensor& x, const ActivationOptions& options) {
  constexpr const char* kOp = "quantile_activation";
  check_values(kOp, x);
  TORCH_CHECK(options.density_samples >= 0, "[", kOp, "] expected density_samples >= 0, got ",
              options.density_samples);
  return check_quantile(kOp, options.quantile);
}

void check_activation_backward(const at::Tensor& grad, const at::Tensor& density) {
  constexpr const char* kOp = "quantile_activation_backward";
  check_values(kOp, grad);
  check_like(kOp, {"density", density}, {"grad", grad});
}

core::Quantile check_quantiles(const at::Tensor& x, int64_t levels, double bound,
                               double positive_share) {
  constexpr const char* kOp = "quantiles";
  check_values(kOp, x);
  return check_quantile(kOp, {levels, bound, positive_share});
}

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_activation(Tensor x, int levels=100, float bound=100.0, "
      "float positive_share=0.5, float bandwidth=0.5, str algorithm=\"auto\", "
      "bool quantised=True, int density_samples=0, int seed=0) -> Tensor");
  m.def(
      "_quantile_activation_forward(Tensor x, int levels, float bound, float positive_share, "
      "float bandwidth, str algorithm, bool quantised, int density_samples, int seed, "
      "bool need_density) -> (Tensor, Tensor)");
  m.def("_quantile_activation_backward(Tensor grad, Tensor density) -> Tensor");
  m.def(
      "quantiles(Tensor x, int levels=100, float bound=100.0, float positive_share=0.5) "
      "-> Tensor");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_activation", activation_entry<activation_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("quantile_activation", activation_entry<activation_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_activation", activation_entry<activation_without_gradient>);
  m.impl("_quantile_activation_forward", activation_entry<forward_meta, bool>);
  m.impl("_quantile_activation_backward", backward_meta);
  m.impl("quantiles", quantiles_meta);
}

}  // namespace qact::ops
