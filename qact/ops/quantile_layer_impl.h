// What the devices implement of the fused layer, and how the dispatcher calls them.
#pragma once

#include "qact/core/quantile.h"
#include "qact/ops/checks.h"
#include "qact/ops/quantile_layer.h"

namespace qact::ops {

// What the backward pass works from, beside the output's gradient: a byte per value and a table per
// context, of contexts that are long enough for one; and x, where some are not (core/contexts.h).
// Nothing is kept of no rows.
struct KeptSizes {
  c10::SymInt code_rows, code_columns, table_rows, table_columns;
  bool x;  // whether that is needed, too
};
KeptSizes kept_sizes(const at::Tensor& x, const core::Scope& scope, bool keep = true);

// The forward pass with all that the backward pass needs of it, if that is to be kept.
struct LayerResult {
  at::Tensor y;
  at::Tensor code;   // bytes; on CUDA in the order of y, as which grad_y must then be laid out
  at::Tensor table;  // int32
  at::Tensor stats, context;
};
LayerResult quantile_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                   const LayerOptions& options, bool keep);

// What the backward pass is handed of the forward pass.
struct LayerKept {
  MaybeTensor x;
  at::Tensor code, table, stats;
};

// (grad_x, grad_affine), grad_x laid out as x, or as grad_y where there is no x; grad_affine is
// (4, C), float or double as tables are: weight_in, bias_in, weight_out, bias_out.
std::tuple<at::Tensor, at::Tensor> quantile_layer_backward(const at::Tensor& grad_y,
                                                           const LayerKept& kept,
                                                           const LayerAffine& affine,
                                                           const LayerOptions& options);

// One number per channel each, where they are given at all.
void check_affine(const char* op, const LayerAffine& affine, const Named& as);
// What every device checks first; the levels of the fused layer fit a byte.
core::Quantile check_layer(const at::Tensor& x, const LayerAffine& affine,
                           const LayerOptions& options);
core::Quantile check_layer_backward(const at::Tensor& grad_y, const LayerKept& kept,
                                    const LayerAffine& affine, const LayerOptions& options);

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
    int64_t image_channels, int64_t context_images, bool keep) {
  auto [y, code, table, stats, context] =
      kernel(x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
             LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                          eps,
                          track,
                          {image_channels, context_images}},
             keep);
  return {std::move(y), std::move(code), std::move(table), std::move(stats), std::move(context)};
}
template <auto kernel>
auto layer_backward_entry(const at::Tensor& grad_y, const MaybeTensor& x, const at::Tensor& code,
                          const at::Tensor& table, const at::Tensor& stats,
                          const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                          const MaybeTensor& weight_out, double eps, int64_t levels, double bound,
                          double positive_share, double bandwidth, std::string_view algorithm,
                          int64_t image_channels, int64_t context_images) {
  return kernel(grad_y, LayerKept{x, code, table, stats},
                LayerAffine{weight_in, bias_in, weight_out, {}},
                LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                             eps,
                             /*track=*/false,
                             {image_channels, context_images}});
}

}  // namespace qact::ops
