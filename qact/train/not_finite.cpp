#include "qact/train/not_finite.h"

#include <torch/torch.h>

#include "qact/base/fail.h"
#include "qact/models/operator_observer.h"
#include "qact/safetensors/torch/tensors.h"

namespace qact::train {
namespace {

bool is_finite(const c10::IValue& value) {
  if (!value.isTensor()) return true;
  const torch::Tensor& tensor = value.toTensor();
  return !tensor.defined() || !tensor.is_floating_point() || tensor.isfinite().all().item<bool>();
}

std::string describe(const models::OperatorCall& call) {
  const std::string where = call.layer.empty() ? "the input"
                            : call.reads_layer ? "layer " + call.layer
                                               : "what follows layer " + call.layer;
  return where + " (" + std::string(call.name) + ")";
}

}  // namespace

std::string first_not_finite(const torch::nn::Module& network,
                             const std::function<void()>& forward) {
  std::string found;
  const auto observe = [&](const models::OperatorCall& call) {
    // aten::empty and its like return memory without values.
    if (!found.empty() || call.name.find("empty") != std::string_view::npos) return;
    for (const c10::IValue& output : call.outputs) {
      if (is_finite(output)) continue;
      found = describe(call);
      return;
    }
  };
  const torch::NoGradGuard no_grad;
  models::observe_operators(network, observe, forward);
  return found;
}

void check_finite_weights(const torch::nn::Module& network) {
  for (const auto& [name, tensor] : safetensors::state_dict(network)) {
    if (tensor.is_floating_point() && !tensor.isfinite().all().item<bool>()) {
      base::fail("train", "expected finite weights to save, got values of ", name, " that are not");
    }
  }
}

}  // namespace qact::train
