// A layer over several processes has channels of two kinds: those that are ranked over all of them,
// and before these some that are ranked in their image, if any. The latter need no other process:
// they are computed while the former's first reduction is under way.
#pragma once

#include <tuple>

#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {

// The channels of a tensor by their kinds.
struct WorldHalves {
  at::Tensor others;
  MaybeTensor images;
};
WorldHalves world_halves(const at::Tensor& x, int64_t image_channels);

// The affine parameters of the others, from those of all channels.
LayerAffine affine_of_others(const WorldHalves& x, const LayerAffine& affine);

// What is kept for the backward pass: nothing where there are no images.
KeptSizes images_kept(const MaybeTensor& images, bool keep = true);

// As quantile_layer_forward in the scope of the image, with the affine parameters of all channels.
// Without images the results have no values.
LayerResult images_forward(const WorldHalves& x, const LayerAffine& affine,
                           const LayerOptions& options, bool keep);

// (grad_x, grad_affine) as of quantile_layer_backward.
struct WorldLayerKept;
std::tuple<at::Tensor, at::Tensor> images_backward(const WorldHalves& grad_y,
                                                   const WorldLayerKept& kept,
                                                   const LayerAffine& affine,
                                                   const LayerOptions& options);

}  // namespace qact::ops
