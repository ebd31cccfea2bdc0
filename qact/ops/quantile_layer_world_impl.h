// What the devices implement of the fused layer over several processes.
#pragma once

#include <c10/util/DimVector.h>

#include "qact/ops/checks.h"
#include "qact/ops/quantile_layer_world.h"
#include "qact/ops/world_images.h"

namespace qact::ops {

// The forward pass with all that the backward pass needs of it.
struct WorldLayerKept {
  at::Tensor code, table, values;  // a code byte per value and a table per channel
  // Of channels that are ranked in their image, as quantile_layer_backward takes it: x only where
  // it is needed, and the strides of y.
  at::Tensor image_code = {}, image_table = {};
  MaybeTensor x = {};
  c10::SymDimVector image_strides = {};
};
struct WorldLayerForward {
  WorldLayerResult result;
  WorldLayerKept kept;
};
// `keep`: whether there will be a backward pass. Nothing is kept otherwise.
WorldLayerForward world_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, bool keep,
                                      std::string_view group);
// (grad_x, grad_affine) as of quantile_layer_backward.
std::tuple<at::Tensor, at::Tensor> world_layer_backward(const at::Tensor& grad_y,
                                                        const WorldLayerKept& kept,
                                                        const LayerAffine& affine,
                                                        const LayerOptions& options,
                                                        std::string_view group);

// What the devices implement, forward(x, ...) and backward(grad_y, ...): x and grad_y in their
// halves (world_images.h), as the results are. `affine` is that of all channels.
struct WorldForwardHalves {
  WorldLayerForward others;
  LayerResult images;
};
struct WorldBackwardHalves {
  WorldHalves grad_x;
  at::Tensor grad_affine;
};
core::Quantile check_world_layer(const WorldHalves& x, const LayerAffine& affine,
                                 const LayerOptions& options);
core::Quantile check_world_layer_backward(const WorldHalves& grad_y, const WorldLayerKept& kept,
                                          const LayerAffine& affine, const LayerOptions& options);

using WorldForwardTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                                       at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using WorldBackwardTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using WorldResultTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Kernels take structs, the dispatcher hands over the schema's arguments one by one.
template <auto kernel>
WorldResultTensors world_layer_entry(const at::Tensor& x, const MaybeTensor& weight_in,
                                     const MaybeTensor& bias_in, const MaybeTensor& weight_out,
                                     const MaybeTensor& bias_out, double eps, int64_t levels,
                                     double bound, double positive_share, double bandwidth,
                                     std::string_view algorithm, bool track, int64_t image_channels,
                                     std::string_view group) {
  auto [y, stats, context, values] = kernel(
      x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
      LayerOptions{
          {levels, bound, positive_share, bandwidth, algorithm}, eps, track, {image_channels, 0}},
      group);
  return {std::move(y), std::move(stats), std::move(context), std::move(values)};
}
template <auto kernel>
WorldForwardTensors world_layer_forward_entry(
    const at::Tensor& x, const MaybeTensor& x_images, const MaybeTensor& weight_in,
    const MaybeTensor& bias_in, const MaybeTensor& weight_out, const MaybeTensor& bias_out,
    double eps, int64_t levels, double bound, double positive_share, double bandwidth,
    std::string_view algorithm, bool track, bool keep, std::string_view group) {
  auto [others, images] =
      kernel(WorldHalves{x, x_images}, LayerAffine{weight_in, bias_in, weight_out, bias_out},
             LayerOptions{{levels, bound, positive_share, bandwidth, algorithm}, eps, track, {}},
             keep, group);
  auto [result, kept] = std::move(others);
  return {std::move(result.y),     std::move(images.y),       std::move(kept.code),
          std::move(kept.table),   std::move(images.code),    std::move(images.table),
          std::move(result.stats), std::move(result.context), std::move(result.values)};
}
template <auto kernel>
WorldBackwardTensors world_layer_backward_entry(
    const at::Tensor& grad_y, const MaybeTensor& grad_images, const MaybeTensor& x_images,
    const at::Tensor& code, const at::Tensor& table, const at::Tensor& values,
    const at::Tensor& image_code, const at::Tensor& image_table, const MaybeTensor& weight_in,
    const MaybeTensor& bias_in, const MaybeTensor& weight_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm,
    std::string_view group) {
  auto [grad_x, grad_affine] = kernel(
      WorldHalves{grad_y, grad_images},
      WorldLayerKept{code, table, values, image_code, image_table, x_images, {}},
      LayerAffine{weight_in, bias_in, weight_out, {}},
      LayerOptions{{levels, bound, positive_share, bandwidth, algorithm}, eps, false, {}}, group);
  return {std::move(grad_x.others), *std::move(grad_x.images), std::move(grad_affine)};
}

}  // namespace qact::ops
