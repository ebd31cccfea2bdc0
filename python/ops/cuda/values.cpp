#include "python/ops/values.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <tuple>

#include "python/ops/cuda/operands.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

// Levels as one byte, quantised, without samples: what the kernels take. The package's Python half
// asks for nothing else (python/qact/_cuda.py).
std::tuple<Tensor, Tensor> activation_kernel(Tensor x, int64_t levels, double bound,
                                             double positive_share, double bandwidth,
                                             int64_t algorithm, bool keep) {
  constexpr const char* kOp = "quantile_activation";
  core::ActivationForward call;
  call.quantile = check_activation(
      x, {levels, bound, positive_share, bandwidth, algorithm, /*quantised=*/true, 0, 0});
  QACT_EXPECT(levels <= kMostLayerLevels, "[", kOp, "] expected levels in 2..", kMostLayerLevels,
              " for a kernel, got ", levels);
  check_computed(kOp, x);
  const DeviceGuard guard = device_guard(x);
  const FlatTensor in = flatten_readable(x);
  CudaResult y(x, in);
  std::optional<CudaResult> density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  if (keep) call.density = density.emplace(x, in).view();
  const CudaStream on = cuda_stream(x, core::cuda::activation_forward_scratch(call));
  core::cuda::activation_forward(call, on.stream);
  return {y.take(), density ? density->take() : empty_beside(x, {0}, x.scalar_type())};
}

Tensor quantile_apply(Tensor x, Tensor quantiles, MaybeTensor scale, MaybeTensor shift,
                      MaybeTensor out_scale, MaybeTensor out_shift, double bandwidth,
                      bool quantised) {
  const ApplyVectors vectors = {scale, shift, out_scale, out_shift};
  check_apply("quantile_apply", x, quantiles, vectors, bandwidth);
  check_computed("quantile_apply", x);
  const DeviceGuard guard = device_guard(x);
  if (x.numel() == 0) return ResultTensor(x).take();
  const ApplyOperands operands(flatten_readable(x), quantiles, vectors);
  CudaResult y(x, operands.x);
  core::QuantileApply call;
  operands.fill(call);
  call.quantised = quantised;
  call.out_shift = operands.out_shift.vector;
  call.y = y.view();
  core::cuda::quantile_apply(call, cuda_stream(x).stream);
  return y.take();
}

std::tuple<Tensor, Tensor> quantile_apply_backward(Tensor grad_y, Tensor x, Tensor quantiles,
                                                   MaybeTensor scale, MaybeTensor shift,
                                                   MaybeTensor out_scale, double bandwidth) {
  constexpr const char* kOp = "quantile_apply_backward";
  const MaybeTensor none;
  const ApplyVectors vectors = {scale, shift, out_scale, none};
  check_apply_backward(kOp, grad_y, x, quantiles, vectors, bandwidth);
  check_computed(kOp, x);
  const DeviceGuard guard = device_guard(x);
  Tensor affine = empty_beside(x, {4, x.size(1)}, ScalarType::Float);
  if (x.numel() == 0) return {ResultTensor(x).take(), torch::stable::zero_(affine)};
  const ApplyOperands operands(flatten_readable(x), quantiles, vectors);
  const FlatTensor grad = flatten_alike(grad_y, operands.x);
  CudaResult grad_x(x, operands.x);
  core::QuantileApplyBackward call;
  operands.fill(call);
  call.bandwidth = bandwidth;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  const CudaStream on = cuda_stream(x, core::cuda::quantile_apply_backward_scratch(call));
  core::cuda::quantile_apply_backward(call, static_cast<float*>(affine.mutable_data_ptr()),
                                      on.stream);
  return {grad_x.take(), std::move(affine)};
}

Tensor context_build(Tensor x, MaybeTensor scale, MaybeTensor shift) {
  check_context_build(x, scale, shift);
  check_computed("context_build", x);
  const DeviceGuard guard = device_guard(x);
  Tensor out = empty_beside(x, {x.size(1), core::kContextBins}, ScalarType::Long);
  if (x.numel() == 0) return torch::stable::zero_(out);
  const FlatTensor in = flatten_readable(x);
  const FlatVector a = flatten_vector(scale), b = flatten_vector(shift);
  core::cuda::context_build(
      {in.shape, in.view, a.vector, b.vector, static_cast<int64_t*>(out.mutable_data_ptr())},
      cuda_stream(x).stream);
  return out;
}

Tensor context_blend(Tensor a, Tensor b, MaybeTensor batches, std::optional<double> prior,
                     std::optional<double> momentum, int64_t images, int64_t n) {
  const BlendArguments arguments = {a, b, batches, prior, momentum, images, n};
  check_blend(arguments);
  const DeviceGuard guard = device_guard(a);
  double move = momentum.value_or(0);
  if (!prior && !momentum) move = 1.0 / static_cast<double>(read_batches(*batches) + 1);
  const BlendCounts counts = blend_counts(arguments, move);
  const Tensor first = as_contiguous(a), second = as_contiguous(b);
  Tensor out = empty_beside(a, {a.size(0), core::kContextBins}, ScalarType::Long);
  core::cuda::context_blend({a.size(0), static_cast<const int64_t*>(first.const_data_ptr()),
                             counts.a, static_cast<const int64_t*>(second.const_data_ptr()),
                             counts.b, static_cast<int64_t*>(out.mutable_data_ptr())},
                            cuda_stream(a).stream);
  return out;
}

Tensor context_quantiles(Tensor context, int64_t levels, double bound, double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, {"context", context});
  const core::Quantile quantile =
      check_quantile(kOp, levels, bound, positive_share, /*bandwidth=*/1, /*algorithm=*/0);
  const DeviceGuard guard = device_guard(context);
  const Tensor rows = as_contiguous(context);
  Tensor out = empty_beside(context, {context.size(0), levels}, ScalarType::Double);
  core::cuda::context_quantiles(static_cast<const int64_t*>(rows.const_data_ptr()), context.size(0),
                                quantile, static_cast<double*>(out.mutable_data_ptr()),
                                cuda_stream(context).stream);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(qact_python, m) {
  m.def(
      "activation_kernel(Tensor x, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, bool keep) -> (Tensor y, Tensor density)");
}

STABLE_TORCH_LIBRARY_IMPL(qact_python, CUDA, m) {
  m.impl("activation_kernel", TORCH_BOX(&activation_kernel));
  m.impl("quantile_apply", TORCH_BOX(&quantile_apply));
  m.impl("quantile_apply_backward", TORCH_BOX(&quantile_apply_backward));
  m.impl("context_build", TORCH_BOX(&context_build));
  m.impl("context_blend", TORCH_BOX(&context_blend));
  m.impl("context_quantiles", TORCH_BOX(&context_quantiles));
}

}  // namespace qact::python
