// The fused layer over the batches of several processes, torch.ops.qact.quantile_layer_world: every
// channel's context is all of its values on all ranks of a process group (core/world.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "qact/ops/quantile_layer.h"

namespace qact::ops {

struct WorldLayerResult {
  at::Tensor y;
  at::Tensor stats, context;  // as of quantile_layer, over all ranks: the same on each of them
  at::Tensor values;          // int64: how many each channel has on all ranks
};

// x has this rank's images, which may be none; ranks may have different numbers of them. `group` is
// the name that c10d::resolve_process_group knows the process group by; empty: this process alone.
// The channels of scope.image_channels are ranked in their images, without communication: that is
// done while the others' first reduction is under way, in both passes. scope.images must be 0.
//
// y does not depend on how the images are spread over ranks, to the last bit. Differentiable in x
// and the affine parameters, through y: the gradient of x is that of the sum of all ranks' losses,
// and a rank's gradients of affine parameters are those of its own loss, so that their sum over the
// ranks is the whole, as of torch's SyncBatchNorm under DistributedDataParallel, which then divides
// by the number of ranks.
//
// Both passes are collective: all ranks call them in the same order.
WorldLayerResult quantile_layer_world(const at::Tensor& x, const LayerAffine& affine,
                                      const LayerOptions& options, std::string_view group);

}  // namespace qact::ops
