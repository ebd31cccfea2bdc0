// What the fused operators share in their gradients: four optional vectors, one number
// per channel each, whose gradients come back as the rows of one (4, C) tensor.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <vector>

#include "qact/ops/border.h"

namespace qact::ops {

using AffineVectors = std::array<MaybeTensor, 4>;

inline bool wants_gradient(const at::Tensor& x, const AffineVectors& vectors) {
  bool wanted = x.requires_grad();
  for (const MaybeTensor& vector : vectors) wanted |= vector && vector->requires_grad();
  return wanted && at::GradMode::is_enabled();
}

// The vectors' types, -1 for an absent one: the backward pass needs no more of them.
inline void save_types(torch::autograd::AutogradContext* context, const AffineVectors& vectors) {
  std::vector<int64_t> types;
  for (const MaybeTensor& vector : vectors) {
    types.push_back(vector ? static_cast<int64_t>(vector->scalar_type()) : -1);
  }
  context->saved_data["types"] = types;
}

inline std::array<at::Tensor, 4> split_gradient(torch::autograd::AutogradContext* context,
                                                const at::Tensor& affine) {
  std::array<at::Tensor, 4> out;
  const std::vector<int64_t> types = context->saved_data["types"].toIntVector();
  for (int i = 0; i < 4; ++i) {
    if (types[i] < 0) continue;
    const auto type = static_cast<at::ScalarType>(types[i]);
    out[i] = affine.select(0, i);
    if (out[i].scalar_type() != type) out[i] = out[i].to(type);
  }
  return out;
}

}  // namespace qact::ops
