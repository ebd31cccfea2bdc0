#include "qact/models/operator_observer.h"

#include <ATen/record_function.h>

#include <map>
#include <memory>
#include <utility>

namespace qact::models {
namespace {

class OperatorObserver {
 public:
  OperatorObserver(const torch::nn::Module& network,
                   const std::function<void(const OperatorCall&)>& observe)
      : observe_(observe) {
    for (const auto& parameter : network.named_parameters()) {
      const std::string& name = parameter.key();
      layers_[parameter.value().storage().data()] = name.substr(0, name.rfind('.'));
    }
  }

  void begin(c10::ArrayRef<const c10::IValue> inputs) {
    if (depth_++ == 0) {
      reads_layer_ = false;
      input_ = inputs.empty() || !inputs[0].isTensor() ? torch::Tensor() : inputs[0].toTensor();
    }
    // At any depth: a quantile activation's parameters are read by the operators inside it alone.
    for (const c10::IValue& input : inputs) {
      if (!input.isTensor() || !input.toTensor().has_storage()) continue;
      const auto known = layers_.find(input.toTensor().storage().data());
      if (known == layers_.end()) continue;
      layer_ = known->second;
      reads_layer_ = true;
    }
  }

  void end(std::string_view name, const std::vector<c10::IValue>& outputs) {
    if (--depth_ > 0) return;
    const torch::Tensor input = std::exchange(input_, torch::Tensor());
    observe_({name, input, outputs, layer_, reads_layer_});
  }

 private:
  const std::function<void(const OperatorCall&)>& observe_;
  std::map<const void*, std::string> layers_;  // by the memory of their parameters
  int depth_ = 0;
  torch::Tensor input_;
  std::string layer_;
  bool reads_layer_ = false;
};

// Callbacks are plain functions, called on the thread that registered them.
thread_local OperatorObserver* operator_observer = nullptr;

std::unique_ptr<at::ObserverContext> on_operator_begin(const at::RecordFunction& call) {
  const at::DisableRecordFunctionGuard unobserved;
  operator_observer->begin(call.inputs());
  return nullptr;
}

void on_operator_end(const at::RecordFunction& call, at::ObserverContext*) {
  const at::DisableRecordFunctionGuard unobserved;
  operator_observer->end(call.name(), call.outputs());
}

class CallbackGuard {
 public:
  explicit CallbackGuard(OperatorObserver* observer)
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_operator_begin, on_operator_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION}))) {
    operator_observer = observer;
  }
  ~CallbackGuard() {
    at::removeCallback(handle_);
    operator_observer = nullptr;
  }
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

void observe_operators(const torch::nn::Module& network,
                       const std::function<void(const OperatorCall&)>& observe,
                       const std::function<void()>& work) {
  OperatorObserver observer(network, observe);
  const CallbackGuard guard(&observer);
  work();
}

}  // namespace qact::models
