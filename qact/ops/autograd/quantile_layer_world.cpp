#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "qact/ops/autograd/node.h"
#include "qact/ops/autograd/tangents.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Gradients that nobody gave count as 0: every rank takes part in the backward pass's round.
class WorldLayer : public torch::autograd::Function<WorldLayer> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                               const MaybeTensor& weight_out, const MaybeTensor& bias_out,
                               const LayerOptions& options, std::string_view group) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [result, kept] = world_layer_forward(x, {weight_in, bias_in, weight_out, bias_out},
                                              options, /*keep=*/true, group);
    const auto plain = [](const MaybeTensor& vector) { return vector.value_or(at::Tensor()); };
    context->save_for_backward(
        {kept.code, kept.table, kept.values, plain(weight_in), plain(weight_out)});
    context->saved_data["eps"] = options.eps;
    context->saved_data["levels"] = options.quantile.levels;
    context->saved_data["group"] = std::string(group);
    context->saved_data["given"] = std::vector<int64_t>{
        weight_in.has_value(), bias_in.has_value(), weight_out.has_value(), bias_out.has_value()};
    context->mark_non_differentiable({result.stats, result.context, result.values});
    return {result.y, result.stats, result.context, result.values};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    LayerOptions options;
    options.eps = context->saved_data["eps"].toDouble();
    options.quantile.levels = context->saved_data["levels"].toInt();
    auto [grad_x, affine] = world_layer_backward(
        grads[0], {saved[0], saved[1], saved[2]}, {maybe(saved[3]), {}, maybe(saved[4]), {}},
        options, context->saved_data["group"].toStringRef());
    variable_list out(7);
    out[0] = std::move(grad_x);
    const std::vector<int64_t> given = context->saved_data["given"].toIntVector();
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) out[i + 1] = affine.select(0, static_cast<int64_t>(i));
    }
    refuse_twice("quantile_layer_world", out);
    return out;
  }
};

WorldLayerResult layer(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                       std::string_view group) {
  const auto& [weight_in, bias_in, weight_out, bias_out] = affine;
  refuse_tangents("quantile_layer_world", x, weight_in, bias_in, weight_out, bias_out);
  if (!torch::autograd::compute_requires_grad(x, weight_in, bias_in, weight_out, bias_out)) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return world_layer_forward(x, affine, options, /*keep=*/false, group).result;
  }
  const variable_list out =
      WorldLayer::apply(x, weight_in, bias_in, weight_out, bias_out, options, group);
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_layer_world", world_layer_entry<layer>);
  m.impl("_quantile_layer_world_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
