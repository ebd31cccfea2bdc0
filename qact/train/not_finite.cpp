#include "qact/train/not_finite.h"

#include <ATen/record_function.h>
#include <torch/torch.h>

#include <map>

namespace qact::train {
namespace {

// Watches the operations that the network itself calls; what they call inside may hold
// memory that is yet to be written.
struct Watch {
  std::map<const void*, std::string> layers;  // by the memory of their parameters
  std::string layer;                          // the last one that was read
  bool read_here = false;                     // by the operation under way
  int depth = 0;
  std::string found;

  void begin(c10::ArrayRef<const c10::IValue> inputs) {
    if (depth++ > 0) return;
    read_here = false;
    for (const c10::IValue& input : inputs) {
      if (!input.isTensor() || !input.toTensor().has_storage()) continue;
      const auto known = layers.find(input.toTensor().storage().data());
      if (known == layers.end()) continue;
      layer = known->second;
      read_here = true;
    }
  }

  void end(const char* operation, const std::vector<c10::IValue>& outputs) {
    if (--depth > 0 || !found.empty()) return;
    if (std::string_view(operation).find("empty") != std::string_view::npos) return;
    for (const c10::IValue& output : outputs) {
      if (!output.isTensor()) continue;
      const at::Tensor& tensor = output.toTensor();
      if (!tensor.defined() || !tensor.is_floating_point()) continue;
      if (tensor.isfinite().all().item<bool>()) continue;
      found = layer.empty() ? "the input"
              : read_here   ? "layer " + layer
                            : "what follows layer " + layer;
      found += " (" + std::string(operation) + ")";
      return;
    }
  }
};

// Callbacks are plain functions, called on the thread that set them.
thread_local Watch* watch = nullptr;

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& call) {
  const at::DisableRecordFunctionGuard unobserved;
  watch->begin(call.inputs());
  return nullptr;
}

void on_end(const at::RecordFunction& call, at::ObserverContext*) {
  const at::DisableRecordFunctionGuard unobserved;
  watch->end(call.name(), call.outputs());
}

}  // namespace

std::string first_not_finite(const torch::nn::Module& network,
                             const std::function<void()>& forward) {
  Watch here;
  for (const auto& parameter : network.named_parameters()) {
    const std::string& name = parameter.key();
    here.layers[parameter.value().storage().data()] = name.substr(0, name.rfind('.'));
  }
  watch = &here;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
  const auto stop = [&] {
    at::removeCallback(handle);
    watch = nullptr;
  };
  try {
    const torch::NoGradGuard no_grad;
    forward();
  } catch (...) {
    stop();
    throw;
  }
  stop();
  return here.found;
}

}  // namespace qact::train
