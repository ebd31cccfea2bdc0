#include "qact/ops/quantile_apply.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <vector>

#include "qact/ops/autograd/tangents.h"
#include "qact/ops/checks.h"
#include "qact/ops/quantile_apply_impl.h"

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
    context->saved_data["given"] = std::vector<int64_t>{
        scale.has_value(), shift.has_value(), out_scale.has_value(), out_shift.has_value()};
    return quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    auto [grad_x, affine] =
        quantile_apply_backward(grads[0], saved[0], saved[1], maybe(saved[2]), maybe(saved[3]),
                                maybe(saved[4]), context->saved_data["bandwidth"].toDouble());
    const auto given = context->saved_data["given"].toIntVector();
    variable_list out(8);
    out[0] = grad_x;
    for (int i = 0; i < 4; ++i) {  // the engine casts a row to its vector's type
      if (given[i]) out[i + 2] = affine.select(0, i);
    }
    return out;
  }
};

at::Tensor apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                 const MaybeTensor& shift, const MaybeTensor& out_scale,
                 const MaybeTensor& out_shift, double bandwidth, bool quantised) {
  refuse_tangents("quantile_apply", x, scale, shift, out_scale, out_shift);
  if (torch::autograd::compute_requires_grad(x, scale, shift, out_scale, out_shift)) {
    return Apply::apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  return quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, Autograd, m) {
  m.impl("quantile_apply", apply);
  // Differentiating twice is an error that names the operator.
  m.impl("_quantile_apply_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace qact::ops
