#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/quantile.h"
#include "qact/ops/border.h"

namespace qact::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, int64_t levels, double bound,
                                           double positive_share, double bandwidth,
                                           std::string_view algorithm, bool quantised,
                                           int64_t density_samples, int64_t seed,
                                           bool need_density) {
  constexpr const char* kOp = "quantile_activation";
  check_values(kOp, "x", x);
  core::ActivationForward call;
  call.quantile = check_quantile(kOp, levels, bound, positive_share, bandwidth,
                                 algorithm);
  TORCH_CHECK(density_samples >= 0, "[", kOp, "] expected density_samples >= 0, got ",
              density_samples);
  call.quantile.quantised = quantised;
  call.quantile.density_samples = density_samples;
  call.quantile.seed = static_cast<uint64_t>(seed);
  const Folded in = fold(x), out = fold_empty_like(in.tensor);
  Folded density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = out.view;
  if (need_density) {
    density = fold_empty_like(in.tensor);
    call.density = density.view;
  }
  core::activation_forward(call, cpu_execution());
  return {out.tensor, need_density ? density.tensor : at::empty({0}, x.options())};
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& density) {
  return at::where(density == 0, at::zeros({}, grad.options()), grad * density);
}

at::Tensor quantiles(const at::Tensor& x, int64_t levels, double bound, double positive_share) {
  constexpr const char* kOp = "quantiles";
  check_values(kOp, "x", x);
  core::Quantiles call;
  call.quantile = check_quantile(kOp, levels, bound, positive_share, 0.5, "exact");
  const Folded in = fold(x);
  call.shape = in.shape;
  call.x = in.view;
  at::Tensor out = at::empty({x.size(1), levels}, x.options().dtype(at::kDouble));
  call.quantiles = out.data_ptr<double>();
  core::quantiles(call, cpu_execution());
  return out.to(table_type(x));
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_activation_forward", forward);
  m.impl("quantile_activation_backward", backward);
  m.impl("quantiles", quantiles);
}

}  // namespace qact::ops
