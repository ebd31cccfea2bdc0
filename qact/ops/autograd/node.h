// Nodes of autograd's graph, and gradients that cannot be differentiated.
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace qact::ops {

// Nodes are counted by std::shared_ptr up to torch 2.12, and by themselves since.
template <class Node, class... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, Node>) {
    return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
  } else {
    return std::shared_ptr<Node>(new Node(std::forward<Arguments>(arguments)...),
                                 [](auto* node) { deleteNode(node); });
  }
}

// For the end of a backward pass. Differentiating twice is an error, also where the gradient is
// made of nothing that depends on the inputs: to autograd it would be a constant. So it comes from
// a node that raises, in front of all that the inputs come from.
inline void refuse_twice(const char* op, torch::autograd::variable_list& gradients,
                         torch::autograd::edge_list inputs) {
  if (!at::GradMode::is_enabled()) return;
  const auto error = make_node<torch::autograd::Error>(
      std::string("[") + op +
          "] expected to be differentiated once, got a second derivative asked for: the gradient "
          "cannot be differentiated",
      std::move(inputs));
  for (at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    gradient = gradient.detach();
    torch::autograd::set_history(gradient, error);
  }
}

inline void refuse_twice(const char* op, torch::autograd::variable_list& gradients) {
  const auto node = torch::autograd::get_current_node();
  if (node) refuse_twice(op, gradients, node->next_edges());
}

}  // namespace qact::ops
