// The fused layer in autograd's graph, whichever operators its passes are.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/DimVector.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "qact/ops/autograd/node.h"
#include "qact/ops/with_strides.h"

namespace qact::ops {

// What the backward pass works from. Of the saved tensors the first is x, or none where it is not
// needed; `wanted` are the vectors whose gradients anybody wants.
template <size_t Count>
struct UnpackedLayer {
  std::array<at::Tensor, Count> tensors;
  c10::SymDimVector strides;  // of y in the forward pass
  std::array<bool, 4> wanted;
};

// The gradients of x and of the four vectors, where formula(grad_y, tensors) returns that of x and
// the rows of the vectors'.
template <class Formula, size_t Count>
torch::autograd::variable_list layer_gradients(const Formula& formula, const at::Tensor& given,
                                               const UnpackedLayer<Count>& saved) {
  // Codes lie in the order of y on CUDA; without x, its gradient is laid out as grad_y.
  const c10::SymIntArrayRef strides(saved.strides);
  const bool matters = !saved.tensors[0].defined() || given.is_cuda();
  const at::Tensor grad_y = matters ? with_strides(given, strides) : given;
  auto [grad_x, affine] = formula(grad_y, saved.tensors);
  // Rows that nobody differentiates need not be known as views.
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
  if (!at::GradMode::is_enabled()) below_autograd.emplace();
  torch::autograd::variable_list out(5);
  out[0] = std::move(grad_x);
  for (int i = 0; i < 4; ++i) {  // the engine casts a row to its vector's type
    if (saved.wanted[i]) out[i + 1] = affine.select(0, i);
  }
  return out;
}

// Made as torch makes the nodes of its own operators: with torch::autograd::Function, which keeps
// numbers in a map of strings and looks tensors up in hash tables, a step of a small layer takes a
// fifth longer. formula.once(gradients) sees to it that nobody differentiates them.
template <size_t Count, class Formula>
class LayerNode : public torch::autograd::Node {
 public:
  using Saved = std::array<torch::autograd::SavedVariable, Count>;

  LayerNode(const at::Tensor& y, Saved&& saved, Formula&& formula)
      : saved_(std::move(saved)), strides_(y.sym_strides()), formula_(std::move(formula)) {}

  std::string name() const override { return "QuantileLayerBackward"; }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (auto& tensor : saved_) tensor.reset_data();
  }

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    if (!grads[0].defined()) return torch::autograd::variable_list(5);
    auto out = layer_gradients(formula_, grads[0], unpack());
    formula_.once(out);
    return out;
  }

  // Under autograd's eyes: a checkpoint computes its tensors anew in here.
  UnpackedLayer<Count> unpack() {
    const std::lock_guard lock(mutex_);
    UnpackedLayer<Count> out;
    for (size_t i = 0; i < Count; ++i) out.tensors[i] = saved_[i].unpack(getptr());
    out.strides = strides_;
    for (int i = 0; i < 4; ++i) out.wanted[i] = task_should_compute_output(i + 1);
    return out;
  }

  Saved saved_;
  c10::SymDimVector strides_;
  Formula formula_;
};

template <class... Tensors>
std::array<torch::autograd::SavedVariable, sizeof...(Tensors)> save(const Tensors&... tensors) {
  return {torch::autograd::SavedVariable(tensors, /*is_output=*/false)...};
}

// y has come from the inputs through such a node.
template <class Node, class Saved, class Formula, class... Inputs>
void record(const at::Tensor& y, Saved&& saved, Formula&& formula, const Inputs&... inputs) {
  const auto node = make_node<Node>(y, std::move(saved), std::move(formula));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  torch::autograd::set_history(y, node);
}

}  // namespace qact::ops
