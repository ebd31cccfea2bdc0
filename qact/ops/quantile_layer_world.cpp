#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_impl.h"
#include "qact/ops/quantile_layer_world_impl.h"
#include "qact/ops/with_strides.h"

namespace qact::ops {
namespace {

constexpr const char* kOp = "quantile_layer_world";

// The signatures of the schemas.
using WorldSchema = WorldResultTensors(const at::Tensor&, const MaybeTensor&, const MaybeTensor&,
                                       const MaybeTensor&, const MaybeTensor&, double, int64_t,
                                       double, double, double, std::string_view, bool, int64_t,
                                       std::string_view);
using WorldForwardSchema = WorldForwardTensors(const at::Tensor&, const MaybeTensor&,
                                               const MaybeTensor&, const MaybeTensor&,
                                               const MaybeTensor&, const MaybeTensor&, double,
                                               int64_t, double, double, double, std::string_view,
                                               bool, bool, std::string_view);
using WorldBackwardSchema = WorldBackwardTensors(
    const at::Tensor&, const MaybeTensor&, const MaybeTensor&, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const MaybeTensor&, const MaybeTensor&,
    const MaybeTensor&, double, int64_t, double, double, double, std::string_view,
    std::string_view);

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

at::Tensor all_in_images(const at::Tensor& x, const LayerAffine& affine, LayerOptions options) {
  if (x.size(0) == 0) return of_no_images(x, affine);
  options.track = false;
  return std::get<0>(quantile_layer(x, affine, options));
}

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

c10::SymInt channels_of(const WorldHalves& x) {
  return x.others.sym_size(1) + (x.images ? x.images->sym_size(1) : c10::SymInt(0));
}

// Before x is cut.
void check_halves(const at::Tensor& x, int64_t image_channels) {
  if (image_channels == 0) return;
  check_images(kOp, x);
  TORCH_CHECK(image_channels > 0 && image_channels < x.sym_size(1), "[", kOp,
              "] expected image_channels below ", x.sym_size(1), ", the channels of x, got ",
              image_channels);
}

}  // namespace

WorldLayerResult quantile_layer_world(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, std::string_view group) {
  TORCH_CHECK(options.scope.images == 0, "[", kOp, "] expected context_images = 0, got ",
              options.scope.images);
  const int64_t images = options.scope.image_channels, channels = x.dim() > 1 ? x.size(1) : 0;
  TORCH_CHECK(images >= 0 && images <= channels, "[", kOp, "] expected image_channels in 0..",
              channels, ", the channels of x, got ", images);
  if (images > 0 && images == channels) {
    const auto none = [&](int64_t columns, at::ScalarType type) {
      return at::empty({0, columns}, x.options().dtype(type));
    };
    return {all_in_images(x, affine, options), none(core::kLayerStats, at::kDouble),
            none(core::kContextBins, at::kLong), at::zeros({}, x.options().dtype(at::kLong))};
  }
  static const auto op = registered<WorldSchema>("qact::quantile_layer_world");
  const QuantileOptions& q = options.quantile;
  auto [y, stats, context, values] = op.call(
      x, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out, options.eps,
      q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, options.track, images, group);
  return {std::move(y), std::move(stats), std::move(context), std::move(values)};
}

WorldLayerForward world_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, bool keep,
                                      std::string_view group) {
  static const auto op = registered<WorldForwardSchema>("qact::_quantile_layer_world_forward");
  const QuantileOptions& q = options.quantile;
  check_halves(x, options.scope.image_channels);
  const auto [others, images] = world_halves(x, options.scope.image_channels);
  auto [y, y_images, code, table, image_code, image_table, stats, context, values] =
      op.call(others, images, affine.weight_in, affine.bias_in, affine.weight_out, affine.bias_out,
              options.eps, q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm,
              options.track, keep, group);
  WorldLayerForward out{
      {std::move(y), std::move(stats), std::move(context), values},
      {std::move(code), std::move(table), values, std::move(image_code), std::move(image_table)}};
  if (!images) return out;
  out.result.y = at::cat({y_images, out.result.y}, 1);
  out.kept.image_strides = y_images.sym_strides();
  if (keep && images_kept(images).x) out.kept.x = images;
  return out;
}

std::tuple<at::Tensor, at::Tensor> world_layer_backward(const at::Tensor& grad_y,
                                                        const WorldLayerKept& kept,
                                                        const LayerAffine& affine,
                                                        const LayerOptions& options,
                                                        std::string_view group) {
  static const auto op = registered<WorldBackwardSchema>("qact::_quantile_layer_world_backward");
  const QuantileOptions& q = options.quantile;
  auto [others, images] = world_halves(grad_y, options.scope.image_channels);
  // Codes lie in the order of y on CUDA.
  if (images && grad_y.is_cuda()) images = with_strides(*images, kept.image_strides);
  auto [grad_x, grad_x_images, grad_affine] =
      op.call(others, images, kept.x, kept.code, kept.table, kept.values, kept.image_code,
              kept.image_table, affine.weight_in, affine.bias_in, affine.weight_out, options.eps,
              q.levels, q.bound, q.positive_share, q.bandwidth, q.algorithm, group);
  if (images) grad_x = at::cat({grad_x_images, grad_x}, 1);
  return {std::move(grad_x), std::move(grad_affine)};
}

namespace {

WorldForwardHalves forward_meta(const WorldHalves& x, const LayerAffine& affine,
                                const LayerOptions& options, bool keep, std::string_view) {
  check_world_layer(x, affine, options);
  const auto& [others, images] = x;
  const c10::SymInt rows = others.sym_size(1), kept_rows = keep ? rows : c10::SymInt(0);
  const auto table = [&](const c10::SymInt& n, const c10::SymInt& columns, at::ScalarType type) {
    return at::empty_symint({n, columns}, others.options().dtype(type));
  };
  const KeptSizes kept = images_kept(images, keep);
  const at::Tensor values = at::empty({}, others.options().dtype(at::kLong));
  return {{{at::empty_like(others), table(rows, core::kLayerStats, at::kDouble),
            options.track ? table(rows, core::kContextBins, at::kLong)
                          : at::empty({0}, others.options().dtype(at::kLong)),
            values},
           {table(kept_rows, others.sym_numel() / rows, at::kByte),
            table(kept_rows, core::kCodeTableWords, at::kInt),
            values,
            {},
            {}}},
          {images ? at::empty_like(*images) : at::empty({0}, others.options()),
           table(kept.code_rows, kept.code_columns, at::kByte),
           table(kept.table_rows, kept.table_columns, at::kInt),
           {},
           {}}};
}

WorldLayerResult layer_without_gradient(const at::Tensor& x, const LayerAffine& affine,
                                        const LayerOptions& options, std::string_view group) {
  return world_layer_forward(x, affine, options, /*keep=*/false, group).result;
}

WorldBackwardHalves backward_meta(const WorldHalves& grad_y, const WorldLayerKept& kept,
                                  const LayerAffine& affine, const LayerOptions& options,
                                  std::string_view) {
  check_world_layer_backward(grad_y, kept, affine, options);
  const auto& [others, images] = grad_y;
  return {
      {at::empty_like(others), images ? at::empty_like(*images) : at::empty({0}, others.options())},
      at::empty_symint({4, channels_of(grad_y)}, others.options().dtype(table_type(others)))};
}

// The channels that are ranked in their image: as the others but for their number. That an image
// has several values is checked on every rank, before one that has images would end alone.
void check_beside(const char* op, const Named& images, const Named& as) {
  check_device(op, images, as);
  const at::Tensor &found = images.tensor, &others = as.tensor;
  bool alike = found.scalar_type() == others.scalar_type() && found.dim() == others.dim();
  for (int64_t d = 0; alike && d < others.dim(); ++d) {
    alike = d == 1 ? found.sym_size(1) > 0 : found.sym_size(d) == others.sym_size(d);
  }
  TORCH_CHECK(alike, "[", op, "] expected ", images.name, " to be as ", as.name, ", ",
              describe(others), ", but for the channels, got ", describe(found));
  if (has_symbols(found)) return;
  TORCH_CHECK(found.dim() > 2 && c10::multiply_integers(found.sizes().slice(2)) > 1, "[", op,
              "] expected more than one value per context to take statistics from, got contexts of "
              "one image with one value, in ",
              describe(found));
}

void check_affine_of(const char* op, const LayerAffine& affine, const c10::SymInt& channels,
                     const Named& as) {
  for (const auto& [name, vector] : {std::pair{"weight_in", &affine.weight_in},
                                     {"bias_in", &affine.bias_in},
                                     {"weight_out", &affine.weight_out},
                                     {"bias_out", &affine.bias_out}}) {
    if (*vector) check_vector(op, {name, **vector}, channels, as);
  }
}

}  // namespace

core::Quantile check_world_layer(const WorldHalves& x, const LayerAffine& affine,
                                 const LayerOptions& options) {
  const Named as = {"x", x.others};
  check_images(kOp, x.others);
  check_positive(kOp, "eps", options.eps);
  if (x.images) check_beside(kOp, {"x_images", *x.images}, as);
  check_affine_of(kOp, affine, channels_of(x), as);
  return check_quantile(kOp, options.quantile, kMostLayerLevels);
}

core::Quantile check_world_layer_backward(const WorldHalves& grad_y, const WorldLayerKept& kept,
                                          const LayerAffine& affine, const LayerOptions& options) {
  constexpr const char* kBackward = "quantile_layer_world_backward";
  const auto& [others, images] = grad_y;
  const Named as = {"grad_y", others};
  check_images(kBackward, others);
  check_positive(kBackward, "eps", options.eps);
  const c10::SymInt channels = others.sym_size(1);
  check_table(kBackward, {"code", kept.code}, at::kByte, channels, others.sym_numel() / channels,
              as);
  check_table(kBackward, {"table", kept.table}, at::kInt, channels, core::kCodeTableWords, as);
  check_device(kBackward, {"values", kept.values}, as);
  TORCH_CHECK(kept.values.scalar_type() == at::kLong && kept.values.dim() == 0, "[", kBackward,
              "] expected values to be a number, int64 of shape (), got ", describe(kept.values));
  if (images) check_beside(kBackward, {"grad_images", *images}, as);
  const KeptSizes sizes = images_kept(images);
  check_table(kBackward, {"image_code", kept.image_code}, at::kByte, sizes.code_rows,
              sizes.code_columns, as);
  check_table(kBackward, {"image_table", kept.image_table}, at::kInt, sizes.table_rows,
              sizes.table_columns, as);
  TORCH_CHECK(kept.x || !sizes.x, "[", kBackward, "] expected x_images, which codes of ",
              describe(*images), " do not replace, got none");
  if (images && kept.x) {
    check_device(kBackward, {"x_images", *kept.x}, as);
    check_like(kBackward, {"x_images", *kept.x}, {"grad_images", *images});
  }
  check_affine_of(kBackward, affine, channels_of(grad_y), as);
  return check_quantile(kBackward, options.quantile, kMostLayerLevels);
}

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "quantile_layer_world(Tensor x, Tensor? weight_in=None, Tensor? bias_in=None, "
      "Tensor? weight_out=None, Tensor? bias_out=None, float eps=1e-05, int levels=100, "
      "float bound=100.0, float positive_share=0.5, float bandwidth=0.5, "
      "str algorithm=\"auto\", bool track=False, int image_channels=0, str group=\"\") "
      "-> (Tensor y, Tensor stats, Tensor context, Tensor values)");
  m.def(
      "_quantile_layer_world_forward(Tensor x, Tensor? x_images, Tensor? weight_in, "
      "Tensor? bias_in, Tensor? weight_out, Tensor? bias_out, float eps, int levels, float bound, "
      "float positive_share, float bandwidth, str algorithm, bool track, bool keep, str group) "
      "-> (Tensor y, Tensor y_images, Tensor code, Tensor table, Tensor image_code, "
      "Tensor image_table, Tensor stats, Tensor context, Tensor values)");
  m.def(
      "_quantile_layer_world_backward(Tensor grad_y, Tensor? grad_images, Tensor? x_images, "
      "Tensor code, Tensor table, Tensor values, Tensor image_code, Tensor image_table, "
      "Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, float eps, int levels, "
      "float bound, float positive_share, float bandwidth, str algorithm, str group) "
      "-> (Tensor grad_x, Tensor grad_x_images, Tensor grad_affine)");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_without_gradient>);
}

TORCH_LIBRARY_IMPL(qact, Meta, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer_without_gradient>);
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<forward_meta>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<backward_meta>);
}

}  // namespace qact::ops
