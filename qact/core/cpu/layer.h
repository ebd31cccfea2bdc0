// The fused layer where all values of a channel are one context, whatever the call's scope says.
#pragma once

#include "qact/core/quantile.h"

namespace qact::core::cpu {

void layer_forward_whole(const LayerForward& call, const Execution& execution);
void layer_backward_whole(const LayerBackward& call, const Execution& execution);

}  // namespace qact::core::cpu
