#include "qact/core/context.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/quantile.h"
#include "qact/ops/context_impl.h"
#include "qact/ops/flatten.h"

namespace qact::ops {
namespace {

constexpr int64_t kChannelsPerThread = 32;

core::ConstContextRow row(const at::Tensor& context, int64_t channel) {
  return core::ConstContextRow(context.const_data_ptr<int64_t>() + channel * core::kContextBins,
                               core::kContextBins);
}

at::Tensor build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_context_build(x, scale, shift);
  const FlatTensor in = flatten_spatial(x);
  const FlatVector a = flatten_vector(scale), b = flatten_vector(shift);
  at::Tensor out = at::empty({x.size(1), core::kContextBins}, x.options().dtype(at::kLong));
  core::context_build({in.shape, in.view, a.vector, b.vector, out.data_ptr<int64_t>()},
                      cpu_execution());
  return out;
}

at::Tensor blend(const at::Tensor& a, double a_values, const at::Tensor& b, double b_values) {
  check_context_blend(a, a_values, b, b_values);
  const at::Tensor first = a.contiguous(), second = b.contiguous();
  at::Tensor out = at::empty(a.sizes(), a.options());
  core::context_blend({a.size(0), first.const_data_ptr<int64_t>(), a_values,
                       second.const_data_ptr<int64_t>(), b_values, out.data_ptr<int64_t>()},
                      cpu_execution());
  return out;
}

at::Tensor quantiles(const at::Tensor& context, int64_t levels, double bound,
                     double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, "context", context);
  const core::Quantile quantile = check_quantile(kOp, {levels, bound, positive_share});
  const at::Tensor rows = context.contiguous();
  at::Tensor out = at::empty({context.size(0), levels}, context.options().dtype(at::kDouble));
  double* found = out.data_ptr<double>();
  cpu_execution().run(context.size(0), kChannelsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      core::context_quantiles(row(rows, c), quantile, found + c * levels);
    }
  });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("context_build", build);
  m.impl("context_blend", blend);
  m.impl("context_quantiles", quantiles);
}

}  // namespace qact::ops
