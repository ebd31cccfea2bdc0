#include "qact/ops/context.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/ops/checks.h"
#include "qact/ops/context_impl.h"
#include "qact/ops/dispatch.h"

namespace qact::ops {

at::Tensor context_build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  static const auto op = registered<decltype(context_build)>("qact::context_build");
  return op.call(x, scale, shift);
}

at::Tensor context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values) {
  static const auto op = registered<decltype(context_blend)>("qact::context_blend");
  return op.call(a, a_values, b, b_values);
}

at::Tensor context_quantiles(const at::Tensor& context, int64_t levels, double bound,
                             double positive_share) {
  static const auto op = registered<decltype(context_quantiles)>("qact::context_quantiles");
  return op.call(context, levels, bound, positive_share);
}

at::Tensor context_standard_normal(int64_t channels) {
  at::Tensor row = at::empty({core::kContextBins}, at::kLong);
  core::context_standard_normal(core::ContextRow(row.data_ptr<int64_t>(), core::kContextBins));
  return row.expand({channels, core::kContextBins}).clone();
}

void check_context(const char* op, const char* name, const at::Tensor& context) {
  TORCH_CHECK(context.scalar_type() == at::kLong && context.dim() == 2 &&
                  context.sym_size(1) == core::kContextBins,
              "[", op, "] expected ", name, " to be an int64 tensor of shape (channels,",
              core::kContextBins, "), got ", describe(context));
}

void check_context_build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_values("context_build", x);
  check_channels("context_build", "scale", scale, {"x", x});
  check_channels("context_build", "shift", shift, {"x", x});
}

void check_context_blend(const at::Tensor& a, double a_values, const at::Tensor& b,
                         double b_values) {
  constexpr const char* kOp = "context_blend";
  check_context(kOp, "a", a);
  check_context(kOp, "b", b);
  check_like(kOp, {"b", b}, {"a", a});
  check_effective_count(kOp, a_values);
  check_effective_count(kOp, b_values);
}

void check_effective_count(const char* op, double values) {
  TORCH_CHECK(values >= 0 && values < 0x1.0p46, "[", op,
              "] expected a number of values in [0, 2^46), got ", values);
}

namespace {

at::Tensor build_meta(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_context_build(x, scale, shift);
  return at::empty_symint({x.sym_size(1), core::kContextBins}, x.options().dtype(at::kLong));
}

at::Tensor blend_meta(const at::Tensor& a, double a_values, const at::Tensor& b, double b_values) {
  check_context_blend(a, a_values, b, b_values);
  return at::empty_symint(a.sym_sizes(), a.options());
}

at::Tensor quantiles_meta(const at::Tensor& context, int64_t levels, double bound,
                          double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, "context", context);
  check_quantile(kOp, {levels, bound, positive_share});
  return at::empty_symint({context.sym_size(0), levels}, context.options().dtype(at::kDouble));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def("context_build(Tensor x, Tensor? scale=None, Tensor? shift=None) -> Tensor");
  m.def("context_blend(Tensor a, float a_values, Tensor b, float b_values) -> Tensor");
  m.def(
      "context_quantiles(Tensor context, int levels=100, float bound=100.0, "
      "float positive_share=0.5) -> Tensor");
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("context_build", build_meta);
  m.impl("context_blend", blend_meta);
  m.impl("context_quantiles", quantiles_meta);
}

}  // namespace qact::ops
