#include "qact/ops/context.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/ops/border.h"

namespace qact::ops {

using MaybeTensor = std::optional<at::Tensor>;

at::Tensor context_build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("qact::context_build", "")
                             .typed<decltype(context_build)>();
  return op.call(x, scale, shift);
}

at::Tensor context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("qact::context_blend", "")
                             .typed<decltype(context_blend)>();
  return op.call(a, a_values, b, b_values);
}

at::Tensor context_quantiles(const at::Tensor& context, int64_t levels, double bound,
                             double positive_share) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("qact::context_quantiles", "")
                             .typed<decltype(context_quantiles)>();
  return op.call(context, levels, bound, positive_share);
}

at::Tensor context_standard_normal(int64_t channels) {
  at::Tensor row = at::empty({core::kContextBins}, at::kLong);
  core::context_standard_normal(core::ContextRow(row.data_ptr<int64_t>(), core::kContextBins));
  return row.expand({channels, core::kContextBins}).clone();
}

at::Tensor quantile_apply(const at::Tensor& x, const at::Tensor& quantiles,
                          const MaybeTensor& scale, const MaybeTensor& shift,
                          const MaybeTensor& out_scale, const MaybeTensor& out_shift,
                          double bandwidth, bool quantised) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("qact::quantile_apply", "")
                             .typed<decltype(quantile_apply)>();
  return op.call(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
}

std::tuple<at::Tensor, at::Tensor> quantile_apply_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& quantiles,
    const MaybeTensor& scale, const MaybeTensor& shift, const MaybeTensor& out_scale,
    double bandwidth) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("qact::quantile_apply_backward", "")
                             .typed<decltype(quantile_apply_backward)>();
  return op.call(grad_y, x, quantiles, scale, shift, out_scale, bandwidth);
}

namespace {

at::Tensor build_meta(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_kind("context_build", "x", x);
  check_channels("context_build", "scale", scale.value_or(at::Tensor()), x);
  check_channels("context_build", "shift", shift.value_or(at::Tensor()), x);
  return at::empty_symint({x.sym_size(1), core::kContextBins}, x.options().dtype(at::kLong));
}

at::Tensor blend_meta(const at::Tensor& a, double, const at::Tensor&, double) {
  return at::empty_like(a);
}

at::Tensor quantiles_meta(const at::Tensor& context, int64_t levels, double, double) {
  return at::empty_symint({context.sym_size(0), levels}, context.options().dtype(at::kDouble));
}

at::Tensor apply_meta(const at::Tensor& x, const at::Tensor&, const MaybeTensor&,
                      const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, double, bool) {
  check_kind("quantile_apply", "x", x);
  return at::empty_like(x);
}

std::tuple<at::Tensor, at::Tensor> apply_backward_meta(const at::Tensor&, const at::Tensor& x,
                                                       const at::Tensor&, const MaybeTensor&,
                                                       const MaybeTensor&, const MaybeTensor&,
                                                       double) {
  return {at::empty_like(x),
          at::empty_symint({4, x.sym_size(1)}, x.options().dtype(at::kDouble))};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def("context_build(Tensor x, Tensor? scale=None, Tensor? shift=None) -> Tensor");
  m.def("context_blend(Tensor a, float a_values, Tensor b, float b_values) -> Tensor");
  m.def(
      "context_quantiles(Tensor context, int levels=100, float bound=100.0, "
      "float positive_share=0.5) -> Tensor");
  m.def(
      "quantile_apply(Tensor x, Tensor quantiles, Tensor? scale=None, Tensor? shift=None, "
      "Tensor? out_scale=None, Tensor? out_shift=None, float bandwidth=0.5, "
      "bool quantised=True) -> Tensor");
  m.def(
      "quantile_apply_backward(Tensor grad_y, Tensor x, Tensor quantiles, Tensor? scale, "
      "Tensor? shift, Tensor? out_scale, float bandwidth) -> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("context_build", build_meta);
  m.impl("context_blend", blend_meta);
  m.impl("context_quantiles", quantiles_meta);
  m.impl("quantile_apply", apply_meta);
  m.impl("quantile_apply_backward", apply_backward_meta);
}

}  // namespace qact::ops
