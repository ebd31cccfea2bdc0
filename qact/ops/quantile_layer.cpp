#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/ops/checks.h"
#include "qact/ops/dispatch.h"

namespace qact::ops {

std::tuple<at::Tensor, at::Tensor, at::Tensor> quantile_layer(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track) {
  static const auto op = registered<decltype(quantile_layer)>("qact::quantile_layer");
  return op.call(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share,
                 bandwidth, algorithm, track);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> quantile_layer_forward(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track,
    bool need_density) {
  static const auto op =
      registered<decltype(quantile_layer_forward)>("qact::quantile_layer_forward");
  return op.call(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share,
                 bandwidth, algorithm, track, need_density);
}

std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
    const at::Tensor& density, const at::Tensor& stats, const MaybeTensor& weight_in,
    const MaybeTensor& weight_out, double eps, int64_t levels) {
  static const auto op =
      registered<decltype(quantile_layer_backward)>("qact::quantile_layer_backward");
  return op.call(grad_y, x, level, density, stats, weight_in, weight_out, eps, levels);
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_without_gradient(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track) {
  auto [y, level, density, stats, context] =
      quantile_layer_forward(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound,
                             positive_share, bandwidth, algorithm, track, /*need_density=*/false);
  return {y, stats, context};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> forward_meta(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track,
    bool need_density) {
  check_layer(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share,
              bandwidth, algorithm);
  const c10::SymInt channels = x.sym_size(1);
  const c10::SymInt per_channel = x.sym_numel() / channels;
  return {
      at::empty_like(x), at::empty_symint({channels, per_channel}, x.options().dtype(at::kByte)),
      need_density ? at::empty_symint({channels, core::kDensityNodes}, x.options().dtype(at::kInt))
                   : at::empty({0}, x.options().dtype(at::kInt)),
      at::empty_symint({channels, core::kLayerStats}, x.options().dtype(at::kDouble)),
      track ? at::empty_symint({channels, core::kContextBins}, x.options().dtype(at::kLong))
            : at::empty({0}, x.options().dtype(at::kLong))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_meta(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track) {
  auto [y, level, density, stats, context] =
      forward_meta(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share,
                   bandwidth, algorithm, track, false);
  return {y, stats, context};
}

std::tuple<at::Tensor, at::Tensor> backward_meta(const at::Tensor& grad_y, const at::Tensor& x,
                                                 const at::Tensor& level, const at::Tensor& density,
                                                 const at::Tensor& stats,
                                                 const MaybeTensor& weight_in,
                                                 const MaybeTensor& weight_out, double eps,
                                                 int64_t levels) {
  check_layer_backward(grad_y, x, level, density, stats, weight_in, weight_out, eps, levels);
  return {at::empty_like(x),
          at::empty_symint({4, x.sym_size(1)}, x.options().dtype(table_type(x)))};
}

}  // namespace

core::Quantile check_layer(const at::Tensor& x, const MaybeTensor& weight_in,
                           const MaybeTensor& bias_in, const MaybeTensor& weight_out,
                           const MaybeTensor& bias_out, double eps, int64_t levels, double bound,
                           double positive_share, double bandwidth, std::string_view algorithm) {
  constexpr const char* kOp = "quantile_layer";
  check_statistics(kOp, x);
  check_positive(kOp, "eps", eps);
  check_channels(kOp, "weight_in", weight_in, x);
  check_channels(kOp, "bias_in", bias_in, x);
  check_channels(kOp, "weight_out", weight_out, x);
  check_channels(kOp, "bias_out", bias_out, x);
  return check_quantile(kOp, levels, bound, positive_share, bandwidth, algorithm, kMostLayerLevels);
}

void check_layer_backward(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
                          const at::Tensor& density, const at::Tensor& stats,
                          const MaybeTensor& weight_in, const MaybeTensor& weight_out, double eps,
                          int64_t levels) {
  constexpr const char* kOp = "quantile_layer_backward";
  const Named as = {"x", x};
  check_statistics(kOp, x);
  check_positive(kOp, "eps", eps);
  const c10::SymInt channels = x.sym_size(1);
  check_like(kOp, {"grad_y", grad_y}, as);
  check_table(kOp, {"level", level}, at::kByte, channels, x.sym_numel() / channels, as);
  check_table(kOp, {"density", density}, at::kInt, channels, core::kDensityNodes, as);
  check_table(kOp, {"stats", stats}, at::kDouble, channels, core::kLayerStats, as);
  check_channels(kOp, "weight_in", weight_in, x);
  check_channels(kOp, "weight_out", weight_out, x);
  check_levels(kOp, levels, kMostLayerLevels);
}

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_layer(Tensor x, Tensor? weight_in=None, Tensor? bias_in=None, "
      "Tensor? weight_out=None, Tensor? bias_out=None, float eps=1e-05, int levels=100, "
      "float bound=100.0, float positive_share=0.5, float bandwidth=0.5, "
      "str algorithm=\"auto\", bool track=False) -> (Tensor y, Tensor stats, Tensor context)");
  m.def(
      "quantile_layer_forward(Tensor x, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, "
      "Tensor? bias_out, float eps, int levels, float bound, float positive_share, "
      "float bandwidth, str algorithm, bool track, bool need_density) "
      "-> (Tensor y, Tensor level, Tensor density, Tensor stats, Tensor context)");
  m.def(
      "quantile_layer_backward(Tensor grad_y, Tensor x, Tensor level, Tensor density, "
      "Tensor stats, Tensor? weight_in, Tensor? weight_out, float eps, int levels) "
      "-> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) { m.impl("quantile_layer", layer_without_gradient); }

TORCH_LIBRARY_IMPL(qact, CUDA, m) { m.impl("quantile_layer", layer_without_gradient); }

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_layer", layer_meta);
  m.impl("quantile_layer_forward", forward_meta);
  m.impl("quantile_layer_backward", backward_meta);
}

}  // namespace qact::ops
