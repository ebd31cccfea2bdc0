// One context of each channel: what the fused layer does for every context of a scope.
#pragma once

#include "qact/core/quantile.h"

namespace qact::core::cpu {

void layer_forward_whole(const LayerForward& call, const Execution& execution);
void layer_backward_whole(const LayerBackward& call, const Execution& execution);

}  // namespace qact::core::cpu
