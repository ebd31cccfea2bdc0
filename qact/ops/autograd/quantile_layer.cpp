#include "qact/ops/quantile_layer.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "qact/ops/autograd/affine.h"

namespace qact::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class Layer : public torch::autograd::Function<Layer> {
 public:
  static variable_list forward(AutogradContext* context, const Variable& x,
                               const MaybeTensor& weight_in, const MaybeTensor& bias_in,
                               const MaybeTensor& weight_out, const MaybeTensor& bias_out,
                               double eps, int64_t levels, double bound, double positive_share,
                               double bandwidth, std::string_view algorithm, bool track) {
    at::AutoDispatchBelowADInplaceOrView guard;
    auto [y, level, density, stats, kept] =
        quantile_layer_forward(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound,
                               positive_share, bandwidth, algorithm, track, /*need_density=*/true);
    context->save_for_backward({x, level, density, stats, weight_in.value_or(at::Tensor()),
                                weight_out.value_or(at::Tensor())});
    context->saved_data["eps"] = eps;
    context->saved_data["levels"] = levels;
    save_types(context, {weight_in, bias_in, weight_out, bias_out});
    context->mark_non_differentiable({stats, kept});
    context->set_materialize_grads(false);  // nobody reads theirs
    return {y, stats, kept};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (!grads[0].defined()) return variable_list(12);
    // Only a gradient of the gradient needs autograd to look on.
    std::optional<at::AutoDispatchBelowADInplaceOrView> unwatched;
    if (!at::GradMode::is_enabled()) unwatched.emplace();
    const variable_list saved = context->get_saved_variables();
    auto [grad_x, affine] = quantile_layer_backward(
        grads[0], saved[0], saved[1], saved[2], saved[3], maybe(saved[4]), maybe(saved[5]),
        context->saved_data["eps"].toDouble(), context->saved_data["levels"].toInt());
    const auto vectors = split_gradient(context, affine);
    return {grad_x, vectors[0], vectors[1], vectors[2], vectors[3], {}, {}, {}, {}, {}, {}, {}};
  }
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer(
    const at::Tensor& x, const MaybeTensor& weight_in, const MaybeTensor& bias_in,
    const MaybeTensor& weight_out, const MaybeTensor& bias_out, double eps, int64_t levels,
    double bound, double positive_share, double bandwidth, std::string_view algorithm, bool track) {
  if (wants_gradient(x, {weight_in, bias_in, weight_out, bias_out})) {
    variable_list out = Layer::apply(x, weight_in, bias_in, weight_out, bias_out, eps, levels,
                                     bound, positive_share, bandwidth, algorithm, track);
    return {out[0], out[1], out[2]};
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  return quantile_layer(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound,
                        positive_share, bandwidth, algorithm, track);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_layer", layer);
  // Differentiating twice is an error that names the operator.
  m.impl("quantile_layer_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
