#include "python/ops/values.h"

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "python/ops/cpu/affine.h"
#include "python/ops/execution.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

constexpr int64_t kChannelsPerThread = 32;

std::tuple<Tensor, Tensor> activation_forward(Tensor x, int64_t levels, double bound,
                                              double positive_share, double bandwidth,
                                              int64_t algorithm, bool quantised,
                                              int64_t density_samples, int64_t seed, bool keep) {
  core::ActivationForward call;
  call.quantile = check_activation(
      x, {levels, bound, positive_share, bandwidth, algorithm, quantised, density_samples, seed});
  const FlatTensor in = flatten_spatial(x);
  ResultTensor y(x);
  std::optional<ResultTensor> density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  if (keep) call.density = density.emplace(x).view();
  core::activation_forward(call, cpu_execution());
  return {y.take(), density ? density->take() : empty_beside(x, {0}, x.scalar_type())};
}

Tensor quantiles(Tensor x, int64_t levels, double bound, double positive_share) {
  core::Quantiles call;
  call.quantile = check_quantiles(x, levels, bound, positive_share);
  const FlatTensor in = flatten_spatial(x);
  call.shape = in.shape;
  call.x = in.view;
  Tensor out = empty_beside(x, {x.size(1), levels}, ScalarType::Double);
  call.quantiles = static_cast<double*>(out.mutable_data_ptr());
  core::quantiles(call, cpu_execution());
  return table_type(x) == ScalarType::Double ? out : torch::stable::to(out, table_type(x));
}

Tensor quantile_apply(Tensor x, Tensor quantiles, MaybeTensor scale, MaybeTensor shift,
                      MaybeTensor out_scale, MaybeTensor out_shift, double bandwidth,
                      bool quantised) {
  const ApplyVectors vectors = {scale, shift, out_scale, out_shift};
  check_apply("quantile_apply", x, quantiles, vectors, bandwidth);
  ResultTensor y(x);
  if (x.numel() == 0) return y.take();
  const ApplyOperands operands(flatten_spatial(x), quantiles, vectors);
  core::QuantileApply call;
  operands.fill(call);
  call.quantised = quantised;
  call.out_shift = operands.out_shift.vector;
  call.y = y.view();
  core::quantile_apply(call, cpu_execution());
  return y.take();
}

std::tuple<Tensor, Tensor> quantile_apply_backward(Tensor grad_y, Tensor x, Tensor quantiles,
                                                   MaybeTensor scale, MaybeTensor shift,
                                                   MaybeTensor out_scale, double bandwidth) {
  const MaybeTensor none;
  const ApplyVectors vectors = {scale, shift, out_scale, none};
  check_apply_backward("quantile_apply_backward", grad_y, x, quantiles, vectors, bandwidth);
  ResultTensor grad_x(x);
  std::vector<double> affine(4 * x.size(1));
  if (x.numel() > 0) {
    const ApplyOperands operands(flatten_spatial(x), quantiles, vectors);
    const FlatTensor grad = flatten_spatial(grad_y);
    core::QuantileApplyBackward call;
    operands.fill(call);
    call.bandwidth = bandwidth;
    call.grad_y = grad.view;
    call.grad_x = grad_x.view();
    call.grad_affine = affine.data();
    core::quantile_apply_backward(call, cpu_execution());
  }
  return {grad_x.take(), affine_rows(affine, x)};
}

Tensor context_build(Tensor x, MaybeTensor scale, MaybeTensor shift) {
  check_context_build(x, scale, shift);
  const FlatTensor in = flatten_spatial(x);
  const FlatVector a = flatten_vector(scale), b = flatten_vector(shift);
  Tensor out = empty_beside(x, {x.size(1), core::kContextBins}, ScalarType::Long);
  if (x.numel() == 0) return torch::stable::zero_(out);
  core::context_build(
      {in.shape, in.view, a.vector, b.vector, static_cast<int64_t*>(out.mutable_data_ptr())},
      cpu_execution());
  return out;
}

Tensor context_blend(Tensor a, Tensor b, MaybeTensor batches, std::optional<double> prior,
                     std::optional<double> momentum, int64_t images, int64_t n) {
  const BlendArguments arguments = {a, b, batches, prior, momentum, images, n};
  check_blend(arguments);
  double move = momentum.value_or(0);
  if (!prior && !momentum) {
    move = 1.0 / static_cast<double>(*static_cast<const int64_t*>(batches->const_data_ptr()) + 1);
  }
  const BlendCounts counts = blend_counts(arguments, move);
  const Tensor first = as_contiguous(a), second = as_contiguous(b);
  Tensor out = empty_beside(a, {a.size(0), core::kContextBins}, ScalarType::Long);
  core::context_blend({a.size(0), static_cast<const int64_t*>(first.const_data_ptr()), counts.a,
                       static_cast<const int64_t*>(second.const_data_ptr()), counts.b,
                       static_cast<int64_t*>(out.mutable_data_ptr())},
                      cpu_execution());
  return out;
}

Tensor context_quantiles(Tensor context, int64_t levels, double bound, double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, {"context", context});
  const core::Quantile quantile =
      check_quantile(kOp, levels, bound, positive_share, /*bandwidth=*/1, /*algorithm=*/0);
  const Tensor rows = as_contiguous(context);
  Tensor out = empty_beside(context, {context.size(0), levels}, ScalarType::Double);
  const auto* counts = static_cast<const int64_t*>(rows.const_data_ptr());
  auto* found = static_cast<double*>(out.mutable_data_ptr());
  cpu_execution().run(context.size(0), kChannelsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      core::context_quantiles(
          core::ConstContextRow(counts + c * core::kContextBins, core::kContextBins), quantile,
          found + c * levels);
    }
  });
  return out;
}

// What an untrained layer starts with, one row for all channels.
void standard_normal(Tensor row) {
  QACT_EXPECT(row.scalar_type() == ScalarType::Long && row.dim() == 1 && row.is_contiguous() &&
                  row.size(0) == core::kContextBins,
              "[standard_normal] expected ", core::kContextBins, " int64, got ", describe(row));
  core::context_standard_normal(
      core::ContextRow(static_cast<int64_t*>(row.mutable_data_ptr()), core::kContextBins));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CPU, m) {
  m.impl("activation_forward", TORCH_BOX(&activation_forward));
  m.impl("quantiles", TORCH_BOX(&quantiles));
  m.impl("quantile_apply", TORCH_BOX(&quantile_apply));
  m.impl("quantile_apply_backward", TORCH_BOX(&quantile_apply_backward));
  m.impl("context_build", TORCH_BOX(&context_build));
  m.impl("context_blend", TORCH_BOX(&context_blend));
  m.impl("context_quantiles", TORCH_BOX(&context_quantiles));
  m.impl("standard_normal", TORCH_BOX(&standard_normal));
}

}  // namespace qact::python
