#include "qact/core/context.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "qact/ops/context_impl.h"
#include "qact/ops/cuda/operands.h"

namespace qact::ops {
namespace {

at::Tensor build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  check_context_build(x, scale, shift);
  check_computed("context_build", x);
  const c10::cuda::CUDAGuard guard(x.device());
  const FlatTensor in = flatten_readable(x);
  const FlatVector a = flatten_vector(scale), b = flatten_vector(shift);
  at::Tensor out = at::empty({x.size(1), core::kContextBins}, x.options().dtype(at::kLong));
  core::cuda::context_build({in.shape, in.view, a.vector, b.vector, out.data_ptr<int64_t>()},
                            cuda_stream(x).stream);
  return out;
}

at::Tensor blend(const at::Tensor& a, double a_values, const at::Tensor& b, double b_values) {
  check_context_blend(a, a_values, b, b_values);
  const c10::cuda::CUDAGuard guard(a.device());
  const at::Tensor first = a.contiguous(), second = b.contiguous();
  at::Tensor out = at::empty(a.sizes(), a.options());
  core::cuda::context_blend({a.size(0), first.const_data_ptr<int64_t>(), a_values,
                             second.const_data_ptr<int64_t>(), b_values, out.data_ptr<int64_t>()},
                            cuda_stream(a).stream);
  return out;
}

at::Tensor quantiles(const at::Tensor& context, int64_t levels, double bound,
                     double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, "context", context);
  const core::Quantile quantile = check_quantile(kOp, {levels, bound, positive_share});
  const c10::cuda::CUDAGuard guard(context.device());
  const at::Tensor rows = context.contiguous();
  at::Tensor out = at::empty({context.size(0), levels}, context.options().dtype(at::kDouble));
  core::cuda::context_quantiles(rows.const_data_ptr<int64_t>(), context.size(0), quantile,
                                out.data_ptr<double>(), cuda_stream(context).stream);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("context_build", build);
  m.impl("context_blend", blend);
  m.impl("context_quantiles", quantiles);
}

}  // namespace qact::ops
