// What the devices implement of the fused layer, and how the dispatcher calls them.
#pragma once

#include "qact/core/quantile.h"
#include "qact/ops/checks.h"
#include "qact/ops/quantile_layer.h"

namespace qact::ops {

// What a device's backward pass works from, beside the output's gradient:
//   codes        a byte per value and a table per context, of contexts that are long enough for
//   one;
//                x, where some are not (core/contexts.h)
//   batch_codes  the same of contexts of the whole batch alone. The codes lie in the order of y, so
//                that grad_y must be laid out as y
enum class Keep { nothing, codes, batch_codes };
// Of that device, which a traced tensor names, too.
Keep keep_for(const at::Device& device);
const char* name(Keep keep);
Keep parse_keep(std::string_view name);

// The sizes of both. Nothing is kept of no rows.
struct KeptSizes {
  c10::SymInt code_rows, code_columns, table_rows, table_columns;
  bool x;  // whether that is needed, too
};
KeptSizes kept_sizes(Keep keep, const at::Tensor& x, const core::Scope& scope);

// The forward pass with all that the backward pass needs of it.
struct LayerResult {
  at::Tensor y;
  at::Tensor code;   // bytes, in the device's own order
  at::Tensor table;  // int32
  at::Tensor stats, context;
};
LayerResult quantile_layer_forward(const at::Tensor& x, const LayerAffine& affine,
                                   const LayerOptions& options, Keep keep);

// What the backward pass is handed of the forward pass.
struct LayerKept {
  Keep as;
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
// A device that keeps otherwise refuses.
void check_keep(const char* op, Keep found, const at::Device& device);

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
    int64_t image_channels, int64_t context_images, std::string_view keep) {
  auto [y, code, table, stats, context] =
      kernel(x, LayerAffine{weight_in, bias_in, weight_out, bias_out},
             LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                          eps,
                          track,
                          {image_channels, context_images}},
             parse_keep(keep));
  return {std::move(y), std::move(code), std::move(table), std::move(stats), std::move(context)};
}
template <auto kernel>
auto layer_backward_entry(const at::Tensor& grad_y, const MaybeTensor& x, const at::Tensor& code,
                          const at::Tensor& table, const at::Tensor& stats,
                          const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                          const MaybeTensor& weight_out, double eps, int64_t levels, double bound,
                          double positive_share, double bandwidth, std::string_view algorithm,
                          int64_t image_channels, int64_t context_images, std::string_view keep) {
  return kernel(grad_y, LayerKept{parse_keep(keep), x, code, table, stats},
                LayerAffine{weight_in, bias_in, weight_out, {}},
                LayerOptions{{levels, bound, positive_share, bandwidth, algorithm},
                             eps,
                             /*track=*/false,
                             {image_channels, context_images}});
}

}  // namespace qact::ops
