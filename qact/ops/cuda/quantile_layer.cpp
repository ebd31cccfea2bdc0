#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "qact/ops/cuda/operands.h"
#include "qact/ops/operands.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {
namespace {

LayerResult forward(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                    bool keep) {
  core::LayerForward call;
  call.quantile = check_layer(x, affine, options);
  check_computed("quantile_layer", x);
  const c10::cuda::CUDAGuard guard(x.device());
  const CudaResult y(x);
  const FlatTensor in = flatten_alike(x, y.flat());
  LayerOperands operands(x, affine, options, keep);
  call.eps = options.eps;
  call.scope = options.scope;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  operands.fill(call);
  const CudaStream on = cuda_stream(x, core::cuda::layer_forward_scratch(call));
  core::cuda::layer_forward(call, on.stream);
  return {y.take(), operands.code, operands.table, operands.stats, operands.context};
}

std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& grad_y, const LayerKept& kept,
                                            const LayerAffine& affine,
                                            const LayerOptions& options) {
  core::LayerBackward call;
  call.quantile = check_layer_backward(grad_y, kept, affine, options);
  check_computed("quantile_layer_backward", grad_y);
  const c10::cuda::CUDAGuard guard(grad_y.device());
  const FlatTensor grad = flatten_readable(grad_y);
  const FlatTensor in = kept.x ? flatten_alike(*kept.x, grad) : FlatTensor{};
  const CudaResult grad_x(kept.x ? *kept.x : grad_y, grad);
  const LayerSaved saved(kept, affine);
  at::Tensor gradients = empty_beside(grad_y, {4, grad_y.size(1)}, at::kFloat);
  call.eps = options.eps;
  call.scope = options.scope;
  call.shape = grad.shape;
  call.grad_y = grad.view;
  call.x = in.view;
  saved.fill(call);
  call.grad_x = grad_x.view();
  const CudaStream on = cuda_stream(grad_y, core::cuda::layer_backward_scratch(call));
  core::cuda::layer_backward(call, gradients.data_ptr<float>(), on.stream);
  return {grad_x.take(), gradients};
}

// Under autocast the layer runs in autocast's type; its statistics stay in float32.
std::tuple<at::Tensor, at::Tensor, at::Tensor> autocast(const at::Tensor& x,
                                                        const LayerAffine& affine,
                                                        const LayerOptions& options) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCUDA);
  const at::ScalarType type = at::autocast::get_autocast_dtype(at::kCUDA);
  return quantile_layer(at::autocast::cached_cast(type, x, c10::DeviceType::CUDA), affine, options);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("_quantile_layer_forward", layer_forward_entry<forward>);
  m.impl("_quantile_layer_backward", layer_backward_entry<backward>);
}

TORCH_LIBRARY_IMPL(qact, AutocastCUDA, m) { m.impl("quantile_layer", layer_entry<autocast>); }

}  // namespace qact::ops
