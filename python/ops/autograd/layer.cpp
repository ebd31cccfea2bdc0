// The fused layer in a plain eager call, which a node in C++ records: python/qact/_autograd.py does
// the same in Python, at several microseconds more. It is compiled against torch's C++ API, so it
// fits one version of torch alone. It hands its arguments on to the package's operators, as they
// lie on the stack.
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <utility>

#include "python/ops/autograd/node.h"
#include "qact/ops/autograd/tangents.h"

namespace qact::python {
namespace {

constexpr size_t kTensors = 5;  // x and the four vectors

void layer(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static const c10::OperatorHandle forward = find_operator("qact_python::layer_forward");
  const auto arguments = stack->end() - (kTensors + kSettings + 1);
  std::array<at::Tensor, kTensors> inputs;
  for (size_t i = 0; i < kTensors; ++i) {
    if (!arguments[i].isNone()) inputs[i] = arguments[i].toTensor();
  }
  const auto& [x, weight_in, bias_in, weight_out, bias_out] = inputs;
  ops::refuse_tangents("quantile_layer", x, weight_in, bias_in, weight_out, bias_out);
  const bool keep =
      torch::autograd::compute_requires_grad(x, weight_in, bias_in, weight_out, bias_out);
  LayerFormula formula;
  if (keep) std::copy_n(arguments + kTensors, kSettings, formula.settings.begin());
  stack->insert(stack->end() - 1, keep);
  {
    const at::AutoDispatchBelowAutograd below_autograd;
    forward.callBoxed(stack);
  }
  const auto results = stack->end() - 4;
  if (keep) {
    const at::Tensor y = results[0].toTensor(), kept = results[1].toTensor();
    const bool again = kept.sym_numel() <= x.sym_numel();  // x is needed: keeps_x of _fake.py
    ops::record<Node>(y,
                      ops::save(again ? x : at::Tensor(), kept, results[2].toTensor(), weight_in,
                                again ? bias_in : at::Tensor(), weight_out),
                      std::move(formula), x, weight_in, bias_in, weight_out, bias_out);
  }
  stack->erase(results + 1);  // kept
}

}  // namespace

TORCH_LIBRARY(qact_python_autograd, m) {
  m.def(
      "layer(Tensor x, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, Tensor? bias_out, "
      "float eps, int levels, float bound, float positive_share, float bandwidth, int algorithm, "
      "int image_channels, int context_images, bool track) "
      "-> (Tensor y, Tensor stats, Tensor context)",
      torch::CppFunction::makeFromBoxedFunction<&layer>());
}

}  // namespace qact::python
