#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {

namespace {

// The signatures of the schemas.
using LayerSchema = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
    const MaybeTensor&, double, int64_t, double, double, double, std::string_view, bool);
using LayerForwardSchema = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
    const MaybeTensor&, double, int64_t, double, double, double, std::string_view, bool, bool);

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> quantile_layer(const at::Tensor& x,
                                                              const LayerAffine& affine,
                                                              const LayerOptions& options) {
  static const auto op = registered<LayerSchema>("qact::quantile_layer");
  const QuantileOptions& q = options.quantile;
  return op.call(x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out,
                 options.eps, q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm,
                 options.track);
}

LayerResult quantile_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                   const LayerOptions& options, bool need_density) {
  static const auto op = registered<LayerForwardSchema>("qact::_quantile_layer_forward");
  const QuantileOptions& q = options.quantile;
  auto [y, level, density, stats, context] = op.call(
      x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
      q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track, need_density);
  return {std::move(y), std::move(level), std::move(density), std::move(stats), std::move(context)};
}

std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(
    const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
    const at::Tensor& density, const at::Tensor& stats, const MaybeTensor& weight_in,
    const MaybeTensor& weight_out, double eps, int64_t levels) {
  static const auto op =
      registered<decltype(quantile_layer_backward)>("qact::_quantile_layer_backward");
  return op.call(grad_y, x, level, density, stats, weight_in, weight_out, eps, levels);
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_without_gradient(const at::Tensor& x,
                                                                      const LayerAffine& affine,
                                                                      const LayerOptions& options) {
  LayerResult out = quantile_layer_forward(x, affine, options, /*need_density=*/false);
  return {std::move(out.y), std::move(out.stats), std::move(out.context)};
}

LayerResult forward_meta(const at::Tensor& x, const LayerAffine& affine,
                         const LayerOptions& options, bool need_density) {
  check_layer(x, affine, options);
  const c10::SymInt channels = x.sym_size(1);
  const c10::SymInt per_channel = x.sym_numel() / channels;
  const auto table = [&](bool wanted, const c10::SymInt& columns, at::ScalarType type) {
    const auto as = x.options().dtype(type);
    return wanted ? at::empty_symint({channels, columns}, as) : at::empty({0}, as);
  };
  return {at::empty_like(x), table(true, per_channel, at::kByte),
          table(need_density, core::kDensityNodes, at::kInt),
          table(true, core::kLayerStats, at::kDouble),
          table(options.track, core::kContextBins, at::kLong)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_meta(const at::Tensor& x,
                                                          const LayerAffine& affine,
                                                          const LayerOptions& options) {
  LayerResult out = forward_meta(x, affine, options, /*need_density=*/false);
  return {std::move(out.y), std::move(out.stats), std::move(out.context)};
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

core::Quantile check_layer(const at::Tensor& x, const LayerAffine& affine,
                           const LayerOptions& options) {
  constexpr const char* kOp = "quantile_layer";
  check_statistics(kOp, x);
  check_positive(kOp, "eps", options.eps);
  check_channels(kOp, "weight_in", affine.weight_in, x);
  check_channels(kOp, "bias_in", affine.bias_in, x);
  check_channels(kOp, "weight_out", affine.weight_out, x);
  check_channels(kOp, "bias_out", affine.bias_out, x);
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
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
      "_quantile_layer_forward(Tensor x, Tensor? weight_in, Tensor? bias_in, "
      "Tensor? weight_out, Tensor? bias_out, float eps, int levels, float bound, float "
      "positive_share, "
      "float bandwidth, str algorithm, bool track, bool need_density) "
      "-> (Tensor y, Tensor level, Tensor density, Tensor stats, Tensor context)");
  m.def(
      "_quantile_layer_backward(Tensor grad_y, Tensor x, Tensor level, Tensor density, "
      "Tensor stats, Tensor? weight_in, Tensor? weight_out, float eps, int levels) "
      "-> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) { m.impl("quantile_layer", layer_entry<layer_without_gradient>); }

TORCH_LIBRARY_IMPL(qact, CUDA, m) { m.impl("quantile_layer", layer_entry<layer_without_gradient>); }

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_layer", layer_entry<layer_meta>);
  m.impl("_quantile_layer_forward", layer_forward_entry<forward_meta>);
  m.impl("_quantile_layer_backward", backward_meta);
}

}  // namespace qact::ops
