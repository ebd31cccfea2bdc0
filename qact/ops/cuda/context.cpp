#include "qact/core/context.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "qact/ops/context.h"
#include "qact/ops/cuda/operands.h"
#include "qact/ops/layer_track.h"

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
  core::cuda::context_blend(first.const_data_ptr<int64_t>(), a_values,
                            second.const_data_ptr<int64_t>(), b_values, out.data_ptr<int64_t>(),
                            a.size(0), cuda_stream(a).stream);
  return out;
}

at::Tensor quantiles(const at::Tensor& context, int64_t levels, double bound,
                     double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, "context", context);
  const core::Quantile quantile = check_quantile(kOp, levels, bound, positive_share);
  const c10::cuda::CUDAGuard guard(context.device());
  const at::Tensor rows = context.contiguous();
  at::Tensor out = at::empty({context.size(0), levels}, context.options().dtype(at::kDouble));
  core::cuda::context_quantiles(rows.const_data_ptr<int64_t>(), context.size(0), quantile,
                                out.data_ptr<double>(), cuda_stream(context).stream);
  return out;
}

void track(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out, at::Tensor& var_out,
           at::Tensor& context, at::Tensor& batches, const at::Tensor& stats,
           const at::Tensor& batch, double momentum, double n, double values) {
  check_layer_track(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
                    values);
  for (const at::Tensor* running : {&mean_in, &var_in, &mean_out, &var_out}) {
    TORCH_CHECK(running->scalar_type() == at::kFloat,
                "[layer_track] expected float32 running statistics on CUDA, got ",
                describe(*running));
  }
  const c10::cuda::CUDAGuard guard(context.device());
  const at::Tensor stat_rows = stats.contiguous(), batch_rows = batch.contiguous();
  core::cuda::LayerTrack call;
  call.stats = stat_rows.const_data_ptr<double>();
  call.batch = batch_rows.const_data_ptr<int64_t>();
  call.mean_in = mean_in.data_ptr<float>();
  call.var_in = var_in.data_ptr<float>();
  call.mean_out = mean_out.data_ptr<float>();
  call.var_out = var_out.data_ptr<float>();
  call.context = context.data_ptr<int64_t>();
  call.batches = batches.data_ptr<int64_t>();
  call.channels = context.size(0);
  call.unbiased = n / (n - 1);
  call.momentum = momentum;
  call.values = values;
  core::cuda::layer_track(call, cuda_stream(context).stream);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("context_build", build);
  m.impl("context_blend", blend);
  m.impl("context_quantiles", quantiles);
  m.impl("layer_track", track);
}

}  // namespace qact::ops
