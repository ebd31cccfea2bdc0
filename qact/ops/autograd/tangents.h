// Differentiation in forward mode, which no operator has: a tangent must not be lost in silence.
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace qact::ops {

template <class... Tensors>
void refuse_tangents(const char* op, const Tensors&... inputs) {
  TORCH_CHECK_NOT_IMPLEMENTED((!torch::autograd::isFwGradDefined(inputs) && ...), "[", op,
                              "] expected tensors without tangents, got some: there is no "
                              "differentiation in forward mode");
}

}  // namespace qact::ops
