#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/cpu/affine.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {
namespace {

LayerResult forward(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                    bool need_density) {
  core::LayerForward call;
  call.quantile = check_layer(x, affine, options);
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor out(x);
  LayerOperands operands(x, affine, need_density, options.track);
  call.eps = options.eps;
  call.shape = in.shape;
  call.x = in.view;
  call.y = out.view();
  operands.fill(call);
  core::layer_forward(call, cpu_execution());
  return {out.take(), operands.level, operands.density, operands.stats, operands.context};
}

std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& grad_y, const at::Tensor& x,
                                            const at::Tensor& level, const at::Tensor& density,
                                            const at::Tensor& stats, const MaybeTensor& weight_in,
                                            const MaybeTensor& weight_out, double eps,
                                            int64_t levels) {
  check_layer_backward(grad_y, x, level, density, stats, weight_in, weight_out, eps, levels);
  const FlatTensor in = flatten_spatial(x), grad = flatten_spatial(grad_y);
  const ResultTensor grad_x(x);
  const LayerSaved saved(level, density, stats, weight_in, weight_out);
  std::vector<double> affine(4 * x.size(1));
  core::LayerBackward call;
  call.levels = static_cast<int>(levels);
  call.eps = eps;
  call.shape = in.shape;
  call.grad_y = grad.view;
  call.x = in.view;
  saved.fill(call);
  call.grad_x = grad_x.view();
  call.grad_affine = affine.data();
  core::layer_backward(call, cpu_execution());
  return {grad_x.take(), affine_rows(affine, x)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("_quantile_layer_forward", layer_forward_entry<forward>);
  m.impl("_quantile_layer_backward", backward);
}

}  // namespace qact::ops
