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
    const MaybeTensor&, double, int64_t, double, double, double, std::string_view, bool, int64_t,
    int64_t);
using LayerForwardSchema = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
    const MaybeTensor&, double, int64_t, double, double, double, std::string_view, bool, int64_t,
    int64_t, bool);
using LayerBackwardSchema = std::tuple<at::Tensor, at::Tensor>(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, double, int64_t, double, double,
    double, std::string_view, int64_t, int64_t);

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> quantile_layer(const at::Tensor& x,
                                                              const LayerAffine& affine,
                                                              const LayerOptions& options) {
  static const auto op = registered<LayerSchema>("qact::quantile_layer");
  const QuantileOptions& q = options.quantile;
  return op.call(x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out,
                 options.eps, q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm,
                 options.track, options.scope.image_channels, options.scope.images);
}

LayerResult quantile_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                   const LayerOptions& options, bool need_density) {
  static const auto op = registered<LayerForwardSchema>("qact::_quantile_layer_forward");
  const QuantileOptions& q = options.quantile;
  auto [y, level, density, stats, context] =
      op.call(x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
              q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track,
              options.scope.image_channels, options.scope.images, need_density);
  return {std::move(y), std::move(level), std::move(density), std::move(stats), std::move(context)};
}

std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(const at::Tensor& grad_y,
                                                           const at::Tensor& x,
                                                           const LayerKept& kept,
                                                           const LayerAffine& affine,
                                                           const LayerOptions& options) {
  static const auto op = registered<LayerBackwardSchema>("qact::_quantile_layer_backward");
  const QuantileOptions& q = options.quantile;
  return op.call(grad_y, x, kept.level, kept.density, kept.stats, affine.weight_in, affine.bias_in,
                 affine.weight_out, options.eps, q.levels, q.bound, q.positive_share, q.bandwidth,
                 q.algorithm, options.scope.image_channels, options.scope.images);
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
  const c10::SymInt rows = x.sym_size(1) - options.scope.image_channels;
  const c10::SymInt per_channel = x.sym_numel() / x.sym_size(1);
  const bool keeps = options.scope.images == 0;
  const auto table = [&](bool wanted, const c10::SymInt& columns, at::ScalarType type) {
    const auto as = x.options().dtype(type);
    return wanted ? at::empty_symint({rows, columns}, as) : at::empty({0}, as);
  };
  return {at::empty_like(x), table(keeps, per_channel, at::kByte),
          table(keeps && need_density, core::kDensityNodes, at::kInt),
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
                                                 const LayerKept& kept, const LayerAffine& affine,
                                                 const LayerOptions& options) {
  check_layer_backward(grad_y, x, kept, affine, options);
  return {at::empty_like(x),
          at::empty_symint({4, x.sym_size(1)}, x.options().dtype(table_type(x)))};
}

// The scope fits x, and every context has more than one value, so that it has a variance.
void check_scope(const char* op, const at::Tensor& x, const core::Scope& scope) {
  TORCH_CHECK(scope.image_channels >= 0 && scope.image_channels <= x.sym_size(1), "[", op,
              "] expected image_channels in 0..", x.sym_size(1), ", the channels of x, got ",
              scope.image_channels);
  TORCH_CHECK(scope.images >= 0, "[", op, "] expected context_images >= 0, got ", scope.images);
  if (has_symbols(x) || (scope.image_channels == 0 && scope.images == 0)) return;
  const int64_t batch = x.size(0), spatial = x.numel() / (batch * x.size(1));
  const int64_t least = scope.image_channels > 0 || scope.images == 1 ? 1
                        : scope.images == 0                           ? batch
                        : batch % scope.images > 0                    ? batch % scope.images
                                                                      : scope.images;
  TORCH_CHECK(least * spatial > 1, "[", op,
              "] expected more than one value per context to take statistics from, got contexts of "
              "one image with one value, in ",
              describe(x));
}

}  // namespace

core::Quantile check_layer(const at::Tensor& x, const LayerAffine& affine,
                           const LayerOptions& options) {
  constexpr const char* kOp = "quantile_layer";
  check_statistics(kOp, x);
  check_scope(kOp, x, options.scope);
  check_positive(kOp, "eps", options.eps);
  check_channels(kOp, "weight_in", affine.weight_in, x);
  check_channels(kOp, "bias_in", affine.bias_in, x);
  check_channels(kOp, "weight_out", affine.weight_out, x);
  check_channels(kOp, "bias_out", affine.bias_out, x);
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
}

core::Quantile check_layer_backward(const at::Tensor& grad_y, const at::Tensor& x,
                                    const LayerKept& kept, const LayerAffine& affine,
                                    const LayerOptions& options) {
  constexpr const char* kOp = "quantile_layer_backward";
  const Named as = {"x", x};
  check_statistics(kOp, x);
  check_scope(kOp, x, options.scope);
  check_positive(kOp, "eps", options.eps);
  const c10::SymInt rows = x.sym_size(1) - options.scope.image_channels;
  check_like(kOp, {"grad_y", grad_y}, as);
  check_device(kOp, {"level", kept.level}, as);
  check_device(kOp, {"density", kept.density}, as);
  if (options.scope.images == 0) {
    check_table(kOp, {"level", kept.level}, at::kByte, rows, x.sym_numel() / x.sym_size(1), as);
    check_table(kOp, {"density", kept.density}, at::kInt, rows, core::kDensityNodes, as);
  }
  check_table(kOp, {"stats", kept.stats}, at::kDouble, rows, core::kLayerStats, as);
  check_channels(kOp, "weight_in", affine.weight_in, x);
  check_channels(kOp, "bias_in", affine.bias_in, x);
  check_channels(kOp, "weight_out", affine.weight_out, x);
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
}

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_layer(Tensor x, Tensor? weight_in=None, Tensor? bias_in=None, "
      "Tensor? weight_out=None, Tensor? bias_out=None, float eps=1e-05, int levels=100, "
      "float bound=100.0, float positive_share=0.5, float bandwidth=0.5, "
      "str algorithm=\"auto\", bool track=False, int image_channels=0, int context_images=0) "
      "-> (Tensor y, Tensor stats, Tensor context)");
  m.def(
      "_quantile_layer_forward(Tensor x, Tensor? weight_in, Tensor? bias_in, "
      "Tensor? weight_out, Tensor? bias_out, float eps, int levels, float bound, float "
      "positive_share, "
      "float bandwidth, str algorithm, bool track, int image_channels, int context_images, "
      "bool need_density) "
      "-> (Tensor y, Tensor level, Tensor density, Tensor stats, Tensor context)");
  m.def(
      "_quantile_layer_backward(Tensor grad_y, Tensor x, Tensor level, Tensor density, "
      "Tensor stats, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, float eps, "
      "int levels, float bound, float positive_share, float bandwidth, str algorithm, "
      "int image_channels, int context_images) "
      "-> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) { m.impl("quantile_layer", layer_entry<layer_without_gradient>); }

TORCH_LIBRARY_IMPL(qact, CUDA, m) { m.impl("quantile_layer", layer_entry<layer_without_gradient>); }

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_layer", layer_entry<layer_meta>);
  m.impl("_quantile_layer_forward", layer_forward_entry<forward_meta>);
  m.impl("_quantile_layer_backward", layer_backward_entry<backward_meta>);
}

}  // namespace qact::ops
