// The fused layer's node: its backward pass is the operator layer_backward.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "qact/ops/autograd/layer_node.h"

namespace qact::python {

constexpr size_t kSaved = 6;     // x, kept, stats, weight_in, bias_in, weight_out
constexpr size_t kSettings = 8;  // from eps to context_images, as they lie on a stack
using Unpacked = ops::UnpackedLayer<kSaved>;

inline c10::OperatorHandle find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

struct LayerFormula {
  std::array<c10::IValue, kSettings> settings;

  std::tuple<at::Tensor, at::Tensor> operator()(
      const at::Tensor& grad_y, const std::array<at::Tensor, kSaved>& tensors) const {
    static const c10::OperatorHandle backward = find_operator("qact_python::layer_backward");
    torch::jit::Stack stack;
    stack.reserve(1 + kSaved + kSettings);
    stack.emplace_back(grad_y);
    for (const at::Tensor& tensor : tensors) {
      stack.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue());
    }
    stack.insert(stack.end(), settings.begin(), settings.end());
    const at::AutoDispatchBelowAutograd below_autograd;
    backward.callBoxed(stack);
    return {std::move(stack[0]).toTensor(), std::move(stack[1]).toTensor()};
  }

  static void once(torch::autograd::variable_list& gradients) {
    ops::refuse_twice("quantile_layer", gradients);
  }
};

class Node : public ops::LayerNode<kSaved, LayerFormula> {
 public:
  using LayerNode::LayerNode;

  // Compiled autograd wants the backward pass as a function of what was saved, packed.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    args.collect(std::string(typeid(Node).name()));
    for (const auto& tensor : saved_) args.collect(tensor, /*is_output=*/false);
    for (const c10::SymInt& stride : strides_) args.collect(stride.expect_int());
    for (const c10::IValue& setting : formula_.settings) args.collect(setting, /*nested=*/true);
  }

  torch::autograd::variable_list apply_with_saved(
      const torch::autograd::variable_list& grads,
      torch::dynamo::autograd::SwapSavedVariables& swap) override {
    namespace compiled = torch::dynamo::autograd;
    for (auto& tensor : saved_) swap.before(tensor);
    const std::vector<c10::IValue> packed = pack(unpack());
    std::vector<c10::TypePtr> schema;  // where a tensor's own type would be one of its strides, too
    for (const c10::IValue& value : packed) {
      schema.push_back(value.isTensor() ? c10::TensorType::get() : value.type());
    }
    const auto& compiler = compiled::getPyCompilerInterface();
    const std::string function =
        compiler->bind_function(swap.get_py_compiler(), name(), &of_packed, schema,
                                /*is_custom_function=*/true, /*is_traceable=*/true);
    const auto metadata =
        compiled::IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
            compiled::get_input_metadata(next_edges()));
    auto out = compiler->call_function(swap.get_py_compiler(), "apply_functional", function, grads,
                                       packed, metadata);
    for (auto& tensor : saved_) swap.after(tensor);
    return out;
  }

 private:
  // A gradient that nobody gave counts as 0, as in Python.
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    if (!grads[0].defined()) grads[0] = input_metadata(0).zeros_like();
    return LayerNode::apply(std::move(grads));
  }

  std::vector<c10::IValue> pack(const Unpacked& saved) const {
    std::vector<c10::IValue> packed(saved.tensors.begin(), saved.tensors.end());
    packed.insert(packed.end(), formula_.settings.begin(), formula_.settings.end());
    std::vector<int64_t> strides;
    for (const c10::SymInt& stride : saved.strides) strides.push_back(stride.expect_int());
    packed.emplace_back(strides);
    packed.emplace_back(std::vector<bool>(saved.wanted.begin(), saved.wanted.end()));
    return packed;
  }

  static torch::autograd::variable_list of_packed(const torch::autograd::variable_list& grads,
                                                  const std::vector<c10::IValue>& packed) {
    auto next = packed.begin();
    Unpacked saved;
    for (at::Tensor& tensor : saved.tensors) tensor = (next++)->toTensor();
    LayerFormula formula;
    for (c10::IValue& setting : formula.settings) setting = *next++;
    for (const int64_t stride : (next++)->toIntVector()) saved.strides.push_back(stride);
    const std::vector<bool> wanted = (next++)->to<std::vector<bool>>();
    std::copy(wanted.begin(), wanted.end(), saved.wanted.begin());
    return ops::layer_gradients(formula, grads[0], saved);
  }
};

}  // namespace qact::python
