#include "qact/ops/quantile_activation.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace qact::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class Activation : public torch::autograd::Function<Activation> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, int64_t levels, double bound,
                          double positive_share, double bandwidth, std::string_view algorithm,
                          bool quantised, int64_t density_samples, int64_t seed) {
    at::AutoDispatchBelowADInplaceOrView guard;
    auto [y, density] = quantile_activation_forward(x, levels, bound, positive_share, bandwidth,
                                                    algorithm, quantised, density_samples, seed,
                                                    /*need_density=*/true);
    context->save_for_backward({density});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    variable_list out(9);
    out[0] = quantile_activation_backward(grads[0], context->get_saved_variables()[0]);
    return out;
  }
};

at::Tensor activation(const at::Tensor& x, int64_t levels, double bound, double positive_share,
                      double bandwidth, std::string_view algorithm, bool quantised,
                      int64_t density_samples, int64_t seed) {
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    return Activation::apply(x, levels, bound, positive_share, bandwidth, algorithm, quantised,
                             density_samples, seed);
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  return quantile_activation(x, levels, bound, positive_share, bandwidth, algorithm, quantised,
                             density_samples, seed);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_activation", activation);
  // Differentiating twice is an error that names the operator.
  m.impl("quantile_activation_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
