#include "qact/ops/quantile_activation.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "qact/ops/autograd/node.h"
#include "qact/ops/autograd/tangents.h"
#include "qact/ops/quantile_activation_impl.h"

namespace qact::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class Activation : public torch::autograd::Function<Activation> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x,
                          const ActivationOptions& options) {
    at::AutoDispatchBelowADInplaceOrView guard;
    auto [y, density] = quantile_activation_forward(x, options, /*need_density=*/true);
    context->save_for_backward({density});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    variable_list out(2);  // x and its options
    out[0] = quantile_activation_backward(grads[0], context->get_saved_variables()[0]);
    refuse_twice("quantile_activation", out);
    return out;
  }
};

at::Tensor activation(const at::Tensor& x, const ActivationOptions& options) {
  refuse_tangents("quantile_activation", x);
  if (at::GradMode::is_enabled() && x.requires_grad()) return Activation::apply(x, options);
  at::AutoDispatchBelowADInplaceOrView guard;
  return quantile_activation(x, options);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_activation", activation_entry<activation>);
  // Differentiating twice is an error that names the operator.
  m.impl("_quantile_activation_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
