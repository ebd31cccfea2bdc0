#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/core/contexts.h"
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
    const at::Tensor&, const MaybeTensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
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
                                   const LayerOptions& options, bool keep) {
  static const auto op = registered<LayerForwardSchema>("qact::_quantile_layer_forward");
  const QuantileOptions& q = options.quantile;
  auto [y, code, table, stats, context] =
      op.call(x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
              q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track,
              options.scope.image_channels, options.scope.images, keep);
  return {std::move(y), std::move(code), std::move(table), std::move(stats), std::move(context)};
}

std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(const at::Tensor& grad_y,
                                                           const LayerKept& kept,
                                                           const LayerAffine& affine,
                                                           const LayerOptions& options) {
  static const auto op = registered<LayerBackwardSchema>("qact::_quantile_layer_backward");
  const QuantileOptions& q = options.quantile;
  return op.call(grad_y, kept.x, kept.code, kept.table, kept.stats, affine.weight_in,
                 affine.bias_in, affine.weight_out, options.eps, q.levels, q.bound,
                 q.positive_share, q.bandwidth, q.algorithm, options.scope.image_channels,
                 options.scope.images);
}

KeptSizes kept_sizes(const at::Tensor& x, const core::Scope& scope, bool keep) {
  const c10::SymInt batch = x.sym_size(0), channels = x.sym_size(1);
  const c10::SymInt values = x.sym_numel() / channels;
  if (!keep) return {0, values, 0, core::kCodeTableWords, /*x=*/true};
  const auto kept = core::kept_contexts<c10::SymInt>(scope, batch, channels, values / batch,
                                                     static_cast<int64_t>(x.element_size()));
  return {kept.code_channels, values, kept.tables, core::kCodeTableWords, kept.x};
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_without_gradient(const at::Tensor& x,
                                                                      const LayerAffine& affine,
                                                                      const LayerOptions& options) {
  LayerResult out = quantile_layer_forward(x, affine, options, false);
  return {std::move(out.y), std::move(out.stats), std::move(out.context)};
}

LayerResult forward_meta(const at::Tensor& x, const LayerAffine& affine,
                         const LayerOptions& options, bool keep) {
  check_layer(x, affine, options);
  const KeptSizes kept = kept_sizes(x, options.scope, keep);
  const auto table = [&](const c10::SymInt& rows, const c10::SymInt& columns, at::ScalarType type) {
    return at::empty_symint({rows, columns}, x.options().dtype(type));
  };
  const c10::SymInt rows = x.sym_size(1) - options.scope.image_channels;
  return {at::empty_like(x), table(kept.code_rows, kept.code_columns, at::kByte),
          table(kept.table_rows, kept.table_columns, at::kInt),
          table(rows, core::kLayerStats, at::kDouble),
          options.track ? table(rows, core::kContextBins, at::kLong)
                        : at::empty({0}, x.options().dtype(at::kLong))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_meta(const at::Tensor& x,
                                                          const LayerAffine& affine,
                                                          const LayerOptions& options) {
  LayerResult out = forward_meta(x, affine, options, false);
  return {std::move(out.y), std::move(out.stats), std::move(out.context)};
}

std::tuple<at::Tensor, at::Tensor> backward_meta(const at::Tensor& grad_y, const LayerKept& kept,
                                                 const LayerAffine& affine,
                                                 const LayerOptions& options) {
  check_layer_backward(grad_y, kept, affine, options);
  return {at::empty_like(kept.x ? *kept.x : grad_y),
          at::empty_symint({4, grad_y.sym_size(1)}, grad_y.options().dtype(table_type(grad_y)))};
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

void check_affine(const char* op, const LayerAffine& affine, const Named& as) {
  check_channels(op, "weight_in", affine.weight_in, as);
  check_channels(op, "bias_in", affine.bias_in, as);
  check_channels(op, "weight_out", affine.weight_out, as);
  check_channels(op, "bias_out", affine.bias_out, as);
}

core::Quantile check_layer(const at::Tensor& x, const LayerAffine& affine,
                           const LayerOptions& options) {
  constexpr const char* kOp = "quantile_layer";
  check_statistics(kOp, x);
  check_scope(kOp, x, options.scope);
  check_positive(kOp, "eps", options.eps);
  check_affine(kOp, affine, {"x", x});
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
}

core::Quantile check_layer_backward(const at::Tensor& grad_y, const LayerKept& kept,
                                    const LayerAffine& affine, const LayerOptions& options) {
  constexpr const char* kOp = "quantile_layer_backward";
  const Named as = {"grad_y", grad_y};
  check_statistics(kOp, grad_y);
  check_scope(kOp, grad_y, options.scope);
  check_positive(kOp, "eps", options.eps);
  if (kept.x) check_like(kOp, {"x", *kept.x}, as);
  const KeptSizes sizes = kept_sizes(grad_y, options.scope);
  check_table(kOp, {"code", kept.code}, at::kByte, sizes.code_rows, sizes.code_columns, as);
  check_table(kOp, {"table", kept.table}, at::kInt, sizes.table_rows, sizes.table_columns, as);
  TORCH_CHECK(kept.x || !sizes.x, "[", kOp, "] expected x, which codes of ", describe(grad_y),
              " do not replace, got none");
  check_table(kOp, {"stats", kept.stats}, at::kDouble,
              grad_y.sym_size(1) - options.scope.image_channels, core::kLayerStats, as);
  check_affine(kOp, affine, as);
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
      "bool keep) "
      "-> (Tensor y, Tensor code, Tensor table, Tensor stats, Tensor context)");
  m.def(
      "_quantile_layer_backward(Tensor grad_y, Tensor? x, Tensor code, Tensor table, "
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
