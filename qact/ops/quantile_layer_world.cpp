#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_impl.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::ops {
namespace {

constexpr const char* kOp = "quantile_layer_world";

// The signatures of the schemas.
using WorldSchema = WorldResultTensors(const at::Tensor&, const MaybeTensor&, const MaybeTensor&,
                                       const MaybeTensor&, const MaybeTensor&, double, int64_t,
                                       double, double, double, std::string_view, bool,
                                       std::string_view);
using WorldForwardSchema = WorldForwardTensors(const at::Tensor&, const MaybeTensor&,
                                               const MaybeTensor&, const MaybeTensor&,
                                               const MaybeTensor&, double, int64_t, double, double,
                                               double, std::string_view, bool, bool,
                                               std::string_view);
using WorldBackwardSchema = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                               const at::Tensor&, const at::Tensor&,
                                                               const MaybeTensor&,
                                                               const MaybeTensor&, double, int64_t,
                                                               std::string_view);

WorldLayerResult call(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                      std::string_view group) {
  static const auto op = registered<WorldSchema>("qact::quantile_layer_world");
  const QuantileOptions& q = options.quantile;
  auto [y, stats, context, values] =
      op.call(x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
              q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track, group);
  return {std::move(y), std::move(stats), std::move(context), std::move(values)};
}

LayerAffine narrowed(const LayerAffine& affine, int64_t first, int64_t channels) {
  const auto part = [&](const MaybeTensor& vector) {
    return vector ? MaybeTensor(vector->narrow(0, first, channels)) : std::nullopt;
  };
  return {part(affine.weight_in), part(affine.bias_in), part(affine.weight_out),
          part(affine.bias_out)};
}

// The layer of no images, whose parameters still have gradients: 0.
at::Tensor of_no_images(at::Tensor x, const LayerAffine& affine) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = x.size(1);
  for (const MaybeTensor* vector :
       {&affine.weight_in, &affine.bias_in, &affine.weight_out, &affine.bias_out}) {
    if (*vector) x = (x * (*vector)->view(shape)).to(x.scalar_type());
  }
  return x.clone();
}

at::Tensor in_images(const at::Tensor& x, const LayerAffine& affine, LayerOptions options) {
  if (x.size(0) == 0) return of_no_images(x, affine);
  options.scope = {x.size(1), 0};
  options.track = false;
  return std::get<0>(quantile_layer(x, affine, options));
}

}  // namespace

WorldLayerResult quantile_layer_world(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, std::string_view group) {
  TORCH_CHECK(options.scope.images == 0, "[", kOp, "] expected context_images = 0, got ",
              options.scope.images);
  const int64_t images = options.scope.image_channels, channels = x.dim() > 1 ? x.size(1) : 0;
  TORCH_CHECK(images >= 0 && images <= channels, "[", kOp, "] expected image_channels in 0..",
              channels, ", the channels of x, got ", images);
  LayerOptions others = options;
  others.scope = {};
  if (images == 0) return call(x, affine, others, group);
  if (images == channels) {
    const auto none = [&](int64_t columns, at::ScalarType type) {
      return at::empty({0, columns}, x.options().dtype(type));
    };
    return {in_images(x, affine, options), none(core::kLayerStats, at::kDouble),
            none(core::kContextBins, at::kLong), at::zeros({}, x.options().dtype(at::kLong))};
  }
  const auto parts = x.split_with_sizes({images, channels - images}, 1);
  WorldLayerResult out = call(parts[1], narrowed(affine, images, channels - images), others, group);
  out.y = at::cat({in_images(parts[0], narrowed(affine, 0, images), options), out.y}, 1);
  return out;
}

WorldLayerForward world_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, bool keep,
                                      std::string_view group) {
  static const auto op = registered<WorldForwardSchema>("qact::_quantile_layer_world_forward");
  const QuantileOptions& q = options.quantile;
  auto [y, code, table, stats, context, values] = op.call(
      x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
      q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track, keep, group);
  return {{std::move(y), std::move(stats), std::move(context), values},
          {std::move(code), std::move(table), values}};
}

std::tuple<at::Tensor, at::Tensor> world_layer_backward(const at::Tensor& grad_y,
                                                        const WorldLayerKept& kept,
                                                        const LayerAffine& affine,
                                                        const LayerOptions& options,
                                                        std::string_view group) {
  static const auto op = registered<WorldBackwardSchema>("qact::_quantile_layer_world_backward");
  return op.call(grad_y, kept.code, kept.table, kept.values, affine.weight_in, affine.weight_out,
                 options.eps, options.quantile.levels, group);
}

namespace {

// No images are fine, no channels and no places are not.
void check_images(const char* op, const at::Tensor& x) {
  if (has_symbols(x) || x.dim() < 2 || x.size(0) > 0) return check_values(op, x);
  TORCH_CHECK(at::isFloatingType(x.scalar_type()), "[", op,
              "] expected a floating tensor of 2 or more dimensions, got ", describe(x));
  for (int64_t d = 1; d < x.dim(); ++d) {
    TORCH_CHECK(x.size(d) > 0, "[", op, "] expected at least one value per image, got ",
                describe(x));
  }
}

WorldLayerForward forward_meta(const at::Tensor& x, const LayerAffine& affine,
                               const LayerOptions& options, bool keep, std::string_view) {
  check_world_layer(x, affine, options);
  const c10::SymInt rows = x.sym_size(1), kept_rows = keep ? rows : c10::SymInt(0);
  const auto table = [&](const c10::SymInt& n, const c10::SymInt& columns, at::ScalarType type) {
    return at::empty_symint({n, columns}, x.options().dtype(type));
  };
  const at::Tensor values = at::empty({}, x.options().dtype(at::kLong));
  return {{at::empty_like(x), table(rows, core::kLayerStats, at::kDouble),
           options.track ? table(rows, core::kContextBins, at::kLong)
                         : at::empty({0}, x.options().dtype(at::kLong)),
           values},
          {table(kept_rows, x.sym_numel() / rows, at::kByte),
           table(kept_rows, core::kCodeTableWords, at::kInt), values}};
}

WorldLayerResult layer_meta(const at::Tensor& x, const LayerAffine& affine,
                            const LayerOptions& options, std::string_view group) {
  return forward_meta(x, affine, options, false, group).result;
}

WorldLayerResult layer_without_gradient(const at::Tensor& x, const LayerAffine& affine,
                                        const LayerOptions& options, std::string_view group) {
  return world_layer_forward(x, affine, options, /*keep=*/false, group).result;
}

std::tuple<at::Tensor, at::Tensor> backward_meta(const at::Tensor& grad_y,
                                                 const WorldLayerKept& kept,
                                                 const LayerAffine& affine,
                                                 const LayerOptions& options, std::string_view) {
  check_world_layer_backward(grad_y, kept, affine, options);
  return {at::empty_like(grad_y),
          at::empty_symint({4, grad_y.sym_size(1)}, grad_y.options().dtype(table_type(grad_y)))};
}

}  // namespace

core::Quantile check_world_layer(const at::Tensor& x, const LayerAffine& affine,
                                 const LayerOptions& options) {
  check_images(kOp, x);
  check_positive(kOp, "eps", options.eps);
  check_affine(kOp, affine, {"x", x});
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
}

core::Quantile check_world_layer_backward(const at::Tensor& grad_y, const WorldLayerKept& kept,
                                          const LayerAffine& affine, const LayerOptions& options) {
  constexpr const char* kBackward = "quantile_layer_world_backward";
  const Named as = {"grad_y", grad_y};
  check_images(kBackward, grad_y);
  check_positive(kBackward, "eps", options.eps);
  const c10::SymInt channels = grad_y.sym_size(1);
  check_table(kBackward, {"code", kept.code}, at::kByte, channels, grad_y.sym_numel() / channels,
              as);
  check_table(kBackward, {"table", kept.table}, at::kInt, channels, core::kCodeTableWords, as);
  check_device(kBackward, {"values", kept.values}, as);
  TORCH_CHECK(kept.values.scalar_type() == at::kLong && kept.values.dim() == 0, "[", kBackward,
              "] expected values to be a number, int64 of shape (), got ", describe(kept.values));
  check_affine(kBackward, affine, as);
  return check_quantile(kBackward, options.quantile, kMostLayerLevels);
}

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_layer_world(Tensor x, Tensor? weight_in=None, Tensor? bias_in=None, "
      "Tensor? weight_out=None, Tensor? bias_out=None, float eps=1e-05, int levels=100, "
      "float bound=100.0, float positive_share=0.5, float bandwidth=0.5, "
      "str algorithm=\"auto\", bool track=False, str group=\"\") "
      "-> (Tensor y, Tensor stats, Tensor context, Tensor values)");
  m.def(
      "_quantile_layer_world_forward(Tensor x, Tensor? weight_in, Tensor? bias_in, "
      "Tensor? weight_out, Tensor? bias_out, float eps, int levels, float bound, "
      "float positive_share, float bandwidth, str algorithm, bool track, bool keep, str group) "
      "-> (Tensor y, Tensor code, Tensor table, Tensor stats, Tensor context, Tensor values)");
  m.def(
      "_quantile_layer_world_backward(Tensor grad_y, Tensor code, Tensor table, Tensor values, "
      "Tensor? weight_in, Tensor? weight_out, float eps, int levels, str group) "
      "-> (Tensor grad_x, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_meta>);
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<forward_meta>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<backward_meta>);
}

}  // namespace qact::ops
