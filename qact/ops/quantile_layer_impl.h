// What the devices implement of the fused layer, and how the dispatcher calls them.
#pragma once

#include "qact/core/quantile.h"
#include "qact/ops/checks.h"
#include "qact/ops/quantile_layer.h"

namespace qact::ops {

// The forward pass with all that the backward pass needs of it.
struct LayerResult {
  at::Tensor y;
  at::Tensor level;    // a byte per value, (rows, B * spatial), in the device's own order
  at::Tensor density;  // (rows, 256) int32; (0) unless it is needed
  at::Tensor stats, context;
};
LayerResult quantile_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                   const LayerOptions& options, bool need_density);

// What the backward pass is handed of the forward pass. Level and density have no rows where
// contexts are some images of the batch: those are computed again.
struct LayerKept {
  at::Tensor level, density, stats;
};

// (grad_x, grad_affine); grad_affine is (4, C), float or double as tables are: weight_in, bias_in,
// weight_out, bias_out.
std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(const at::Tensor& grad_y,
                                                           const at::Tensor& x,
                                                           const LayerKept& kept,
                                                           const LayerAffine& affine,
                                                           const LayerOptions& options);

// What every device checks first; the levels of the fused layer fit a byte.
core::Quantile check_layer(const at::Tensor& x, const LayerAffine& affine,
                           const LayerOptions& options);
core::Quantile check_layer_backward(const at::Tensor& grad_y, const at::Tensor& x,
                                    const LayerKept& kept, const LayerAffine& affine,
                                    const LayerOptions& options);

// Kernels take the affine parameters and the options as structs, the dispatcher hands over the
// schema's arguments one by one: m.impl(name, layer_entry<kernel>).
template <auto kernel>
auto layer_entry(const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                 const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps,
                 int64_t levels, double bound, double positive_share, double bandwidth,
                 std::string_view algorithm, bool track, int64_t image_channels,
                 int64_t context_images) {
  return kernel(x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
                LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                             eps,
                             track,
                             {image_channels, context_images}});
}
template <auto kernel>
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> layer_forward_entry(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track,
    int64_t image_channels, int64_t context_images, bool need_density) {
  auto [y, level, density, stats, context] =
      kernel(x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
             LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                          eps,
                          track,
                          {image_channels, context_images}},
             need_density);
  return {std::move(y), std::move(level), std::move(density), std::move(stats), std::move(context)};
}
template <auto kernel>
auto layer_backward_entry(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& level,
                          const at::Tensor& density, const at::Tensor& stats,
                          const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                          const MaybeTensor& weight_out, double eps, int64_t levels, double bound,
                          double positive_share, double bandwidth, std::string_view algorithm,
                          int64_t image_channels, int64_t context_images) {
  return kernel(grad_y, x, LayerKept{level, density, stats},
                LayerAffine{weight_in, bias_in, weight_out, {}},
                LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                             eps,
                             /*track=*/false,
                             {image_channels, context_images}});
}

}  // namespace qact::ops
