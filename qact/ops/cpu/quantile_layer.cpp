#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/cpu/affine.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {
namespace {

LayerResult forward(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                    bool keep) {
  core::LayerForward call;
  call.quantile = check_layer(x, affine, options);
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor out(x);
  LayerOperands operands(x, affine, options, keep);
  call.eps = options.eps;
  call.scope = options.scope;
  call.shape = in.shape;
  call.x = in.view;
  call.y = out.view();
  operands.fill(call);
  core::layer_forward(call, cpu_execution());
  return {out.take(), operands.code, operands.table, operands.stats, operands.context};
}

std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& grad_y, const LayerKept& kept,
                                            const LayerAffine& affine,
                                            const LayerOptions& options) {
  core::LayerBackward call;
  call.quantile = check_layer_backward(grad_y, kept, affine, options);
  const FlatTensor grad = flatten_spatial(grad_y);
  const FlatTensor in = kept.x ? flatten_spatial(*kept.x) : FlatTensor{};
  const ResultTensor grad_x(kept.x ? *kept.x : grad_y);
  const LayerSaved saved(kept, affine);
  std::vector<double> gradients(4 * grad_y.size(1));
  call.eps = options.eps;
  call.scope = options.scope;
  call.shape = grad.shape;
  call.grad_y = grad.view;
  call.x = in.view;
  saved.fill(call);
  call.grad_x = grad_x.view();
  call.grad_affine = gradients.data();
  core::layer_backward(call, cpu_execution());
  return {grad_x.take(), affine_rows(gradients, grad_y)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("_quantile_layer_forward", layer_forward_entry<forward>);
  m.impl("_quantile_layer_backward", layer_backward_entry<backward>);
}

}  // namespace qact::ops
