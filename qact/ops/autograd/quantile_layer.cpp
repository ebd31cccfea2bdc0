#include "qact/ops/quantile_layer.h"

#include <ATen/ATen.h>
#include <c10/util/DimVector.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "qact/ops/autograd/node.h"
#include "qact/ops/autograd/tangents.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// The layer in autograd's graph, made as torch makes the nodes of its own operators: with
// torch::autograd::Function, which keeps numbers in a map of strings and looks tensors up in hash
// tables, a step of a small layer takes a fifth longer.
class LayerNode : public torch::autograd::Node {
 public:
  static constexpr size_t kSaved = 7;
  using Saved = std::array<SavedVariable, kSaved>;

  LayerNode(const at::Tensor& y, Saved saved, const LayerOptions& options)
      : saved_(std::move(saved)),
        strides_(y.sym_strides()),
        algorithm_(options.quantile.algorithm),
        options_(options) {
    options_.quantile.algorithm = algorithm_;
  }

  std::string name() const override { return "QuantileLayerBackward"; }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable& tensor : saved_) tensor.reset_data();
  }

 private:
  variable_list apply(variable_list&& grads) override {
    variable_list out(5);
    if (!grads[0].defined()) return out;
    const auto [x, code, table, stats, weight_in, bias_in, weight_out] = unpack();
    // Codes lie in the order of y on CUDA; without x, its gradient is laid out as grad_y.
    const bool matters = !x.defined() || grads[0].is_cuda();
    const at::Tensor grad_y = matters ? with_strides(grads[0], strides_) : grads[0];
    // Where its own gradient may be asked for, as in torch.func, autograd has to look on.
    std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
    if (!at::GradMode::is_enabled()) below_autograd.emplace();
    auto [grad_x, affine] = quantile_layer_backward(
        grad_y, {maybe(x), code, table, stats},
        {maybe(weight_in), maybe(bias_in), maybe(weight_out), std::nullopt}, options_);
    out[0] = std::move(grad_x);
    for (int i = 0; i < 4; ++i) {  // the engine casts a row to its vector's type
      if (task_should_compute_output(i + 1)) out[i + 1] = affine.select(0, i);
    }
    refuse_twice("quantile_layer", out);
    return out;
  }

  // Under autograd's eyes: a checkpoint computes its tensors anew in here.
  std::array<at::Tensor, kSaved> unpack() {
    const std::lock_guard lock(mutex_);
    std::array<at::Tensor, kSaved> out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = saved_[i].unpack(getptr());
    return out;
  }

  Saved saved_;
  c10::SymDimVector strides_;  // of y in the forward pass
  std::string algorithm_;      // which the options only point to
  LayerOptions options_;
};

template <class... Tensors>
LayerNode::Saved save(const Tensors&... tensors) {
  return {SavedVariable(tensors, /*is_output=*/false)...};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer(const at::Tensor& x, const LayerAffine& affine,
                                                     const LayerOptions& options) {
  const auto& [weight_in, bias_in, weight_out, bias_out] = affine;
  refuse_tangents("quantile_layer", x, weight_in, bias_in, weight_out, bias_out);
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd(std::in_place);
  if (!torch::autograd::compute_requires_grad(x, weight_in, bias_in, weight_out, bias_out)) {
    return quantile_layer(x, affine, options);
  }
  auto [y, code, table, stats, context] = quantile_layer_forward(x, affine, options, true);
  below_autograd.reset();
  // x and the shift are needed only where the backward pass computes a context again.
  const bool again = kept_sizes(x, options.scope).x;
  const auto node =
      make_node<LayerNode>(y,
                           save(again ? MaybeTensor(x) : std::nullopt, code, table, stats,
                                weight_in, again ? bias_in : std::nullopt, weight_out),
                           options);
  node->set_next_edges(
      torch::autograd::collect_next_edges(x, weight_in, bias_in, weight_out, bias_out));
  torch::autograd::set_history(y, node);
  return {std::move(y), std::move(stats), std::move(context)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_layer", layer_entry<layer>);
  // Differentiating twice is an error that names the operator.
  m.impl("_quantile_layer_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
