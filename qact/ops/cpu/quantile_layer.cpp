#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/context.h"
#include "qact/ops/border.h"

namespace qact::ops {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> forward(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track,
    bool need_density) {
  constexpr const char* kOp = "quantile_layer";
  core::LayerForward call;
  call.quantile = check_layer(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound,
                              positive_share, bandwidth, algorithm);
  check_values(kOp, x);
  const int64_t channels = x.size(1), per_channel = x.numel() / channels;
  TORCH_CHECK(per_channel > 1, "[", kOp,
              "] expected more than one value per channel to take statistics from, got ",
              describe(x));
  const Folded in = fold(x);
  const Output out(x);
  const FoldedVector w1 = fold_vector(weight_in), b1 = fold_vector(bias_in);
  const FoldedVector w2 = fold_vector(weight_out), b2 = fold_vector(bias_out);
  at::Tensor level = at::empty({channels, per_channel}, x.options().dtype(at::kByte));
  at::Tensor stats = at::empty({channels, core::kLayerStats}, x.options().dtype(at::kDouble));
  at::Tensor density = at::empty({0}, x.options().dtype(at::kInt));
  at::Tensor context = at::empty({0}, x.options().dtype(at::kLong));
  if (need_density) density.resize_({channels, core::kDensityNodes});
  if (track) context.resize_({channels, core::kContextBins});

  call.eps = eps;
  call.shape = in.shape;
  call.x = in.view;
  call.y = out.view();
  call.level = level.data_ptr<uint8_t>();
  call.weight_in = w1.vector;
  call.bias_in = b1.vector;
  call.weight_out = w2.vector;
  call.bias_out = b2.vector;
  call.density = need_density ? density.data_ptr<int32_t>() : nullptr;
  call.stats = stats.data_ptr<double>();
  call.context = track ? context.data_ptr<int64_t>() : nullptr;
  core::layer_forward(call, cpu_execution());
  return {out.take(), level, density, stats, context};
}

std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& grad_y, const at::Tensor& x,
                                            const at::Tensor& level, const at::Tensor& density,
                                            const at::Tensor& stats, const MaybeTensor& weight_in,
                                            const MaybeTensor& weight_out, double eps,
                                            int64_t levels) {
  check_layer_backward(grad_y, x, level, density, stats, weight_in, weight_out, eps, levels);
  check_values("quantile_layer_backward", x);
  const Folded in = fold(x), grad = fold(grad_y);
  const Output grad_x(x);
  const FoldedVector w1 = fold_vector(weight_in), w2 = fold_vector(weight_out);
  const at::Tensor level_rows = level.contiguous(), density_rows = density.contiguous();
  const at::Tensor stats_rows = stats.contiguous();
  at::Tensor affine = at::empty({x.size(1), 4}, x.options().dtype(at::kDouble));
  core::LayerBackward call;
  call.levels = static_cast<int>(levels);
  call.eps = eps;
  call.shape = in.shape;
  call.grad_y = grad.view;
  call.x = in.view;
  call.level = level_rows.const_data_ptr<uint8_t>();
  call.weight_in = w1.vector;
  call.weight_out = w2.vector;
  call.density = density_rows.const_data_ptr<int32_t>();
  call.stats = stats_rows.const_data_ptr<double>();
  call.grad_x = grad_x.view();
  call.grad_affine = affine.data_ptr<double>();
  core::layer_backward(call, cpu_execution());
  return {grad_x.take(), affine.t().to(table_type(x)).contiguous()};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("quantile_layer_forward", forward);
  m.impl("quantile_layer_backward", backward);
}

}  // namespace qact::ops
