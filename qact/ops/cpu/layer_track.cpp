#include "qact/ops/layer_track.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/ops/flatten.h"
#include "qact/ops/layer_track_impl.h"

namespace qact::ops {
namespace {

void track(const RunningState& running, const LayerUpdate& update) {
  const at::Tensor stats = update.stats.contiguous(), batch = update.batch.contiguous();
  core::LayerTrack call = layer_track_call(running, update);
  call.stats = stats.const_data_ptr<double>();
  call.batch = batch.const_data_ptr<int64_t>();
  core::layer_track(call, cpu_execution());
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) { m.impl("_layer_track", layer_track_entry<track>); }

}  // namespace qact::ops
