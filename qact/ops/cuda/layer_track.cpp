#include "qact/ops/layer_track.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "qact/ops/cuda/operands.h"
#include "qact/ops/layer_track_impl.h"

namespace qact::ops {
namespace {

void track(const RunningState& running, const LayerUpdate& update) {
  for (const at::Tensor* vector :
       {&running.mean_in, &running.var_in, &running.mean_out, &running.var_out}) {
    TORCH_CHECK(vector->scalar_type() == at::kFloat,
                "[layer_track] expected float32 running statistics on CUDA, got ",
                describe(*vector));
  }
  const c10::cuda::CUDAGuard guard(running.context.device());
  const at::Tensor stats = update.stats.contiguous(), batch = update.batch.contiguous();
  core::LayerTrack call = layer_track_call(running, update);
  call.stats = stats.const_data_ptr<double>();
  call.batch = batch.const_data_ptr<int64_t>();
  core::cuda::layer_track(call, cuda_stream(running.context).stream);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) { m.impl("_layer_track", layer_track_entry<track>); }

}  // namespace qact::ops
