#include "qact/ops/quantile_apply.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "qact/ops/autograd/affine.h"

namespace qact::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class Apply : public torch::autograd::Function<Apply> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& quantiles,
                          const MaybeTensor& scale, const MaybeTensor& shift,
                          const MaybeTensor& out_scale, const MaybeTensor& out_shift,
                          double bandwidth, bool quantised) {
    at::AutoDispatchBelowADInplaceOrView guard;
    context->save_for_backward({x, quantiles, scale.value_or(at::Tensor()),
                                shift.value_or(at::Tensor()), out_scale.value_or(at::Tensor())});
    context->saved_data["bandwidth"] = bandwidth;
    save_types(context, {scale, shift, out_scale, out_shift});
    return quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    auto [grad_x, affine] =
        quantile_apply_backward(grads[0], saved[0], saved[1], maybe(saved[2]), maybe(saved[3]),
                                maybe(saved[4]), context->saved_data["bandwidth"].toDouble());
    const auto vectors = split_gradient(context, affine);
    return {grad_x, {}, vectors[0], vectors[1], vectors[2], vectors[3], {}, {}};
  }
};

at::Tensor apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                 const MaybeTensor& shift, const MaybeTensor& out_scale,
                 const MaybeTensor& out_shift, double bandwidth, bool quantised) {
  if (wants_gradient(x, {scale, shift, out_scale, out_shift})) {
    return Apply::apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  return quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_apply", apply);
  // Differentiating twice is an error that names the operator.
  m.impl("quantile_apply_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
