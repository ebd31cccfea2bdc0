// What a layer remembers of a batch, in one call: torch.ops.qact._layer_track.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/core/quantile.h"

namespace qact::ops {

// A layer's running statistics and context, updated in place.
struct RunningState {
  at::Tensor mean_in, var_in, mean_out, var_out, context, batches;
};

// What moves them: `stats` and `batch` as quantile_layer returned them, of channels with n values
// each. Afterwards the effective sample count of the context is `values`.
struct LayerUpdate {
  at::Tensor stats, batch;
  double momentum, n, values;
};

// See core::LayerTrack.
void layer_track(const RunningState& running, const LayerUpdate& update);

}  // namespace qact::ops
