#include "qact/ops/quantile_layer.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "qact/ops/autograd/layer_node.h"
#include "qact/ops/autograd/tangents.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {
namespace {

constexpr size_t kSaved = 7;  // x, code, table, stats, weight_in, bias_in, weight_out

struct LayerFormula {
  std::string algorithm;  // which the options only point to
  LayerOptions options;

  std::tuple<at::Tensor, at::Tensor> operator()(const at::Tensor& grad_y,
                                                const std::array<at::Tensor, kSaved>& saved) const {
    const auto& [x, code, table, stats, weight_in, bias_in, weight_out] = saved;
    LayerOptions held = options;
    held.quantile.algorithm = algorithm;
    // Where its own gradient may be asked for, as in torch.func, autograd has to look on.
    std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
    if (!at::GradMode::is_enabled()) below_autograd.emplace();
    return quantile_layer_backward(
        grad_y, {maybe(x), code, table, stats},
        {maybe(weight_in), maybe(bias_in), maybe(weight_out), std::nullopt}, held);
  }

  static void once(torch::autograd::variable_list& gradients) {
    refuse_twice("quantile_layer", gradients);
  }
};

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
  record<LayerNode<kSaved, LayerFormula>>(
      y,
      save(again ? MaybeTensor(x) : std::nullopt, code, table, stats, weight_in,
           again ? bias_in : std::nullopt, weight_out),
      LayerFormula{std::string(options.quantile.algorithm), options}, x, weight_in, bias_in,
      weight_out, bias_out);
  return {std::move(y), std::move(stats), std::move(context)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_layer", layer_entry<layer>);
  // Differentiating twice is an error that names the operator.
  m.impl("_quantile_layer_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
