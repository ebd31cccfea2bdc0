#include "qact/ops/quantile_apply.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/checks.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_apply_impl.h"

namespace qact::ops {

at::Tensor quantile_apply(const at::Tensor& x, const at::Tensor& quantiles,
                          const MaybeTensor& scale, const MaybeTensor& shift,
                          const MaybeTensor& out_scale, const MaybeTensor& out_shift,
                          double bandwidth, bool quantised) {
  static const auto op = registered<decltype(quantile_apply)>("qact::quantile_apply");
  return op.call(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
}

std::tuple<at::Tensor, at::Tensor> quantile_apply_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& quantiles,
    const MaybeTensor& scale, const MaybeTensor& shift, const MaybeTensor& out_scale,
    double bandwidth) {
  static const auto op =
      registered<decltype(quantile_apply_backward)>("qact::_quantile_apply_backward");
  return op.call(grad_y, x, quantiles, scale, shift, out_scale, bandwidth);
}

namespace {

// What forward and backward share.
void check_applied(const char* op, const at::Tensor& x, const at::Tensor& quantiles,
                   const MaybeTensor& scale, const MaybeTensor& shift, const MaybeTensor& out_scale,
                   double bandwidth) {
  check_values(op, x);
  check_device(op, {"quantiles", quantiles}, {"x", x});
  TORCH_CHECK(at::isFloatingType(quantiles.scalar_type()) && quantiles.dim() == 2 &&
                  quantiles.sym_size(0) == x.sym_size(1) && quantiles.sym_size(1) >= 2 &&
                  quantiles.sym_size(1) <= kMostLevels,
              "[", op, "] expected quantiles to be a floating tensor of shape (", x.sym_size(1),
              ",levels) with levels in 2..", kMostLevels, ", got ", describe(quantiles));
  check_channels(op, "scale", scale, {"x", x});
  check_channels(op, "shift", shift, {"x", x});
  check_channels(op, "out_scale", out_scale, {"x", x});
  check_positive(op, "bandwidth", bandwidth);
}

}  // namespace

void check_apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                 const MaybeTensor& shift, const MaybeTensor& out_scale,
                 const MaybeTensor& out_shift, double bandwidth) {
  constexpr const char* kOp = "quantile_apply";
  check_applied(kOp, x, quantiles, scale, shift, out_scale, bandwidth);
  check_channels(kOp, "out_shift", out_shift, {"x", x});
}

void check_apply_backward(const at::Tensor& grad_y, const at::Tensor& x,
                          const at::Tensor& quantiles, const MaybeTensor& scale,
                          const MaybeTensor& shift, const MaybeTensor& out_scale,
                          double bandwidth) {
  constexpr const char* kOp = "quantile_apply_backward";
  check_applied(kOp, x, quantiles, scale, shift, out_scale, bandwidth);
  check_like(kOp, {"grad_y", grad_y}, {"x", x});
}

namespace {

at::Tensor apply_meta(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                      const MaybeTensor& shift, const MaybeTensor& out_scale,
                      const MaybeTensor& out_shift, double bandwidth, bool) {
  check_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth);
  return at::empty_like(x);
}

std::tuple<at::Tensor, at::Tensor> apply_backward_meta(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& quantiles,
    const MaybeTensor& scale, const MaybeTensor& shift, const MaybeTensor& out_scale,
    double bandwidth) {
  check_apply_backward(grad_y, x, quantiles, scale, shift, out_scale, bandwidth);
  return {at::empty_like(x),
          at::empty_symint({4, x.sym_size(1)}, x.options().dtype(table_type(x)))};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_apply(Tensor x, Tensor quantiles, Tensor? scale=None, Tensor? shift=None, "
      "Tensor? out_scale=None, Tensor? out_shift=None, float bandwidth=0.5, "
      "bool quantised=True) -> Tensor");
  m.def(
      "_quantile_apply_backward(Tensor grad_y, Tensor x, Tensor quantiles, Tensor? scale, "
      "Tensor? shift, Tensor? out_scale, float bandwidth) -> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_apply", apply_meta);
  m.impl("_quantile_apply_backward", apply_backward_meta);
}

}  // namespace qact::ops
