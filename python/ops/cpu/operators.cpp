// The operators on the CPU: those that all devices share, and what is its own.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "python/ops/cpu/device.h"
#include "python/ops/layer_operators.h"
#include "python/ops/values_operators.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

std::tuple<Tensor, Tensor> activation_forward(const Tensor& x, int64_t levels, double bound,
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
  return {y.take(), density ? density->take() : empty_beside(x, {0}, type_of(x))};
}

Tensor quantiles(const Tensor& x, int64_t levels, double bound, double positive_share) {
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

// What an untrained layer starts with, one row for all channels.
void standard_normal(const Tensor& row) {
  QACT_EXPECT(type_of(row) == ScalarType::Long && row.dim() == 1 && row.is_contiguous() &&
                  row.size(0) == core::kContextBins,
              "[standard_normal] expected ", core::kContextBins, " int64, got ", describe(row));
  core::context_standard_normal(
      core::ContextRow(static_cast<int64_t*>(row.mutable_data_ptr()), core::kContextBins));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CPU, m) {
  register_layer<Cpu>(m);
  register_values<Cpu>(m);
  m.impl("activation_forward", TORCH_BOX(&activation_forward));
  m.impl("quantiles", TORCH_BOX(&quantiles));
  m.impl("standard_normal", TORCH_BOX(&standard_normal));
}

}  // namespace qact::python
