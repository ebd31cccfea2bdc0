// Tensors in messages.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace qact::ops {

// "int64 of shape (3)"
std::string describe(const at::Tensor& tensor);

// "(3,4)"
std::string describe(c10::SymIntArrayRef numbers);

}  // namespace qact::ops
