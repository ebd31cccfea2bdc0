#include "qact/ops/world_images.h"

#include <ATen/ATen.h>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::ops {
namespace {

LayerAffine narrowed(const LayerAffine& affine, int64_t first, int64_t channels) {
  const auto part = [&](const MaybeTensor& vector) {
    return vector ? MaybeTensor(vector->narrow(0, first, channels)) : std::nullopt;
  };
  return {part(affine.weight_in), part(affine.bias_in), part(affine.weight_out),
          part(affine.bias_out)};
}

LayerOptions in_images(LayerOptions options, int64_t channels) {
  options.scope = {channels, 0};
  options.track = false;
  return options;
}

}  // namespace

WorldHalves world_halves(const at::Tensor& x, int64_t image_channels) {
  if (image_channels == 0) return {x, {}};
  return {x.narrow_symint(1, image_channels, x.sym_size(1) - image_channels),
          x.narrow_symint(1, 0, image_channels)};
}

LayerAffine affine_of_others(const WorldHalves& x, const LayerAffine& affine) {
  return x.images ? narrowed(affine, x.images->size(1), x.others.size(1)) : affine;
}

KeptSizes images_kept(const MaybeTensor& images, bool keep) {
  if (!images || images->sym_size(0) == 0) return {0, 0, 0, core::kCodeTableWords, /*x=*/false};
  return kept_sizes(*images, {images->size(1), 0}, keep);
}

LayerResult images_forward(const WorldHalves& x, const LayerAffine& affine,
                           const LayerOptions& options, bool keep) {
  const auto& [others, images] = x;
  if (images && images->size(0) > 0) {
    const int64_t channels = images->size(1);
    return quantile_layer_forward(*images, narrowed(affine, 0, channels),
                                  in_images(options, channels), keep);
  }
  return {images ? empty_as(*images) : empty_beside(others, {0}, others.scalar_type()),
          empty_beside(others, {0, 0}, at::kByte),
          empty_beside(others, {0, core::kCodeTableWords}, at::kInt),
          {},
          {}};
}

std::tuple<at::Tensor, at::Tensor> images_backward(const WorldHalves& grad_y,
                                                   const WorldLayerKept& kept,
                                                   const LayerAffine& affine,
                                                   const LayerOptions& options) {
  const auto& [others, images] = grad_y;
  const int64_t channels = images ? images->size(1) : 0;
  if (images && images->size(0) > 0) {
    const at::Tensor stats = empty_beside(others, {0, core::kLayerStats}, at::kDouble);
    return quantile_layer_backward(*images, {kept.x, kept.image_code, kept.image_table, stats},
                                   narrowed(affine, 0, channels), in_images(options, channels));
  }
  return {images ? empty_as(*images) : empty_beside(others, {0}, others.scalar_type()),
          at::zeros({4, channels}, others.options().dtype(table_type(others)))};
}

}  // namespace qact::ops
