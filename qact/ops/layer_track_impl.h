// What the devices implement of layer_track, and how the dispatcher calls them.
#pragma once

#include "qact/ops/layer_track.h"

namespace qact::ops {

// What every device checks first.
void check_layer_track(const RunningState& running, const LayerUpdate& update);

// The call without its tables, which must be contiguous.
core::LayerTrack layer_track_call(const RunningState& running, const LayerUpdate& update);

// Kernels take structs, the dispatcher hands over the schema's arguments one by one:
// m.impl(name, layer_track_entry<kernel>).
template <auto kernel>
void layer_track_entry(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out,
                       at::Tensor& var_out, at::Tensor& context, at::Tensor& batches,
                       const at::Tensor& stats, const at::Tensor& batch, double momentum, double n,
                       double values) {
  const RunningState running = {mean_in, var_in, mean_out, var_out, context, batches};
  const LayerUpdate update = {stats, batch, momentum, n, values};
  check_layer_track(running, update);
  kernel(running, update);
  // Who depends on these is told that they have changed, as torch's own operators tell.
  for (const at::Tensor* written : {&mean_in, &var_in, &mean_out, &var_out, &context, &batches}) {
    if (!written->is_inference()) written->unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace qact::ops
