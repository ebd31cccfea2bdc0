// What the devices implement of the fused layer over several processes.
#pragma once

#include "qact/ops/checks.h"
#include "qact/ops/quantile_layer_world.h"

namespace qact::ops {

// The forward pass with all that the backward pass needs of it: a code byte per value and a table
// per channel.
struct WorldLayerKept {
  at::Tensor code, table, values;
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

core::Quantile check_world_layer(const at::Tensor& x, const LayerAffine& affine,
                                 const LayerOptions& options);
core::Quantile check_world_layer_backward(const at::Tensor& grad_y, const WorldLayerKept& kept,
                                          const LayerAffine& affine, const LayerOptions& options);

using WorldForwardTensors =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using WorldResultTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Kernels take structs, the dispatcher hands over the schema's arguments one by one.
template <auto kernel>
WorldResultTensors world_layer_entry(const at::Tensor& x, const MaybeTensor& weight_in,
                                     const MaybeTensor& bias_in, const MaybeTensor& weight_out,
                                     const MaybeTensor& bias_out, double eps, int64_t levels,
                                     double bound, double positive_share, double bandwidth,
                                     std::string_view algorithm, bool track,
                                     std::string_view group) {
  auto [y, stats, context, values] = kernel(
      x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
      LayerOptions{{levels, bound, positive_share, bandwidth, algorithm}, eps, track, {}}, group);
  return {std::move(y), std::move(stats), std::move(context), std::move(values)};
}
template <auto kernel>
WorldForwardTensors world_layer_forward_entry(const at::Tensor& x, const MaybeTensor& weight_in,
                                              const MaybeTensor& bias_in,
                                              const MaybeTensor& weight_out,
                                              const MaybeTensor& bias_out, double eps,
                                              int64_t levels, double bound, double positive_share,
                                              double bandwidth, std::string_view algorithm,
                                              bool track, bool keep, std::string_view group) {
  auto [result, kept] =
      kernel(x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
             LayerOptions{{levels, bound, positive_share, bandwidth, algorithm}, eps, track, {}},
             keep, group);
  return {std::move(result.y),     std::move(kept.code),      std::move(kept.table),
          std::move(result.stats), std::move(result.context), std::move(result.values)};
}
template <auto kernel>
auto world_layer_backward_entry(const at::Tensor& grad_y, const at::Tensor& code,
                                const at::Tensor& table, const at::Tensor& values,
                                const MaybeTensor& weight_in, const MaybeTensor& weight_out,
                                double eps, int64_t levels, std::string_view group) {
  LayerOptions options;
  options.quantile.levels = levels;
  options.eps = eps;
  return kernel(grad_y, WorldLayerKept{code, table, values},
                LayerAffine{weight_in, {}, weight_out, {}}, options, group);
}

}  // namespace qact::ops
