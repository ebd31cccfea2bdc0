// What a layer keeps of a batch, in one call: torch.ops.qact.layer_track.
#pragma once

#include <ATen/core/Tensor.h>

namespace qact::ops {

// Moves the running statistics of both norms by `momentum` towards the batch's, whose
// channels have n values each, and the kept context too, worth `values` after that. stats
// and batch are what quantile_layer returned; `batches` counts one more.
void layer_track(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out, at::Tensor& var_out,
                 at::Tensor& context, at::Tensor& batches, const at::Tensor& stats,
                 const at::Tensor& batch, double momentum, double n, double values);

// What every device checks first.
void check_layer_track(const at::Tensor& mean_in, const at::Tensor& var_in,
                       const at::Tensor& mean_out, const at::Tensor& var_out,
                       const at::Tensor& context, const at::Tensor& batches,
                       const at::Tensor& stats, const at::Tensor& batch, double momentum, double n,
                       double values);

}  // namespace qact::ops
