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
    const bool again = kept.x.has_value();
    context->save_for_backward({kept.code, kept.table, kept.values, kept.image_code,
                                kept.image_table, again ? x : at::Tensor(), plain(weight_in),
                                again ? plain(bias_in) : at::Tensor(), plain(weight_out)});
    const QuantileOptions& q = options.quantile;
    auto& data = context->saved_data;
    data["numbers"] = std::vector<double>{options.eps, q.bound, q.positive_share, q.bandwidth};
    data["counts"] = std::vector<int64_t>{q.levels, options.scope.image_channels};
    data["algorithm"] = std::string(q.algorithm);
    data["group"] = std::string(group);
    data["image_strides"] = c10::SymIntArrayRef(kept.image_strides);
    data["given"] = std::vector<int64_t>{weight_in.has_value(), bias_in.has_value(),
                                         weight_out.has_value(), bias_out.has_value()};
    context->mark_non_differentiable({result.stats, result.context, result.values});
    return {result.y, result.stats, result.context, result.values};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const std::vector<double> numbers = data["numbers"].toDoubleVector();
    const std::vector<int64_t> counts = data["counts"].toIntVector();
    const std::string algorithm = data["algorithm"].toStringRef();
    const LayerOptions options{{counts[0], numbers[1], numbers[2], numbers[3], algorithm},
                               numbers[0],
                               /*track=*/false,
                               {counts[1], 0}};
    WorldLayerKept kept{saved[0], saved[1], saved[2], saved[3], saved[4]};
    if (saved[5].defined()) kept.x = world_halves(saved[5], counts[1]).images;
    for (const c10::SymInt& stride : data["image_strides"].toSymIntVector()) {
      kept.image_strides.push_back(stride);
    }
    auto [grad_x, affine] = world_layer_backward(
        grads[0], kept, {maybe(saved[6]), maybe(saved[7]), maybe(saved[8]), {}}, options,
        data["group"].toStringRef());
    variable_list out(7);
    out[0] = std::move(grad_x);
    const std::vector<int64_t> given = data["given"].toIntVector();
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
