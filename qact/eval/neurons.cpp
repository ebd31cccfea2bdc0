#include "qact/eval/neurons.h"

#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "qact/eval/state_guard.h"
#include "qact/nn/quantile_activation.h"

namespace qact::eval {
namespace {

// Libtorch's modules have no hooks, but its operators can be observed: one of these is called
// for each activation. A quantile activation is observed as a whole: which operators it consists
// of, and whether the outer norm is among them, depends on the context mode.
std::string kind_of(const char* operation) {
  static const std::map<std::string, std::string> kKinds = {{"aten::relu", "relu"},
                                                            {"aten::prelu", "prelu"},
                                                            {"aten::selu", "selu"},
                                                            {nn::kRecordedName, "qact"}};
  const auto found = kKinds.find(operation);
  return found == kKinds.end() ? "" : found->second;
}

using Call = std::function<void(const ActivationSite& site, const torch::Tensor& before,
                                const torch::Tensor& after)>;

class NeuronWatch {
 public:
  NeuronWatch(const models::Network& network, Call call)
      : network_(network), call_(std::move(call)) {
    for (const auto& parameter : network.named_parameters()) {
      const std::string& name = parameter.key();
      layers_[parameter.value().storage().data()] = name.substr(0, name.rfind('.'));
    }
  }

  void begin(const at::RecordFunction& operation) {
    // A layer's parameters may be read by the operators inside it alone.
    for (const c10::IValue& input : operation.inputs()) {
      if (!input.isTensor() || !input.toTensor().has_storage()) continue;
      const auto known = layers_.find(input.toTensor().storage().data());
      if (known != layers_.end()) layer_ = known->second;
    }
    if (depth_++ > 0) return;
    if (!kind_of(operation.name()).empty()) before_ = operation.inputs()[0].toTensor();
  }

  void end(const at::RecordFunction& operation) {
    if (--depth_ > 0 || !before_.defined()) return;
    const std::string kind = kind_of(operation.name());
    const bool own = kind == "qact" || kind == "prelu";
    const torch::Tensor before = std::exchange(before_, torch::Tensor());
    // There is no output where the operation has thrown.
    if (network_.is_training() || operation.outputs().empty()) return;
    call_({calls_++, own ? layer_ : "after " + layer_, kind, before.size(1)}, before,
          operation.outputs()[0].toTensor());
  }

 private:
  const models::Network& network_;
  const Call call_;
  std::map<const void*, std::string> layers_;  // by the memory of their parameters
  std::string layer_;                          // the last one that was read
  torch::Tensor before_;                       // of the activation under way
  int depth_ = 0;
  int64_t calls_ = 0;
};

// Callbacks are plain functions, called on the thread that set them.
thread_local NeuronWatch* neuron_watch = nullptr;

std::unique_ptr<at::ObserverContext> on_neuron_begin(const at::RecordFunction& operation) {
  const at::DisableRecordFunctionGuard unobserved;
  neuron_watch->begin(operation);
  return nullptr;
}

void on_neuron_end(const at::RecordFunction& operation, at::ObserverContext*) {
  const at::DisableRecordFunctionGuard unobserved;
  neuron_watch->end(operation);
}

// Watches this thread while it lives.
class Watching {
 public:
  explicit Watching(NeuronWatch* here)
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(on_neuron_begin, on_neuron_end)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}))) {
    neuron_watch = here;
  }
  ~Watching() {
    at::removeCallback(handle_);
    neuron_watch = nullptr;
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  at::CallbackHandle handle_;
};

torch::Tensor values_of(const torch::Tensor& x, int64_t channel) {
  return x.select(1, channel).flatten().to(torch::kCPU, torch::kFloat).clone();
}

}  // namespace

std::vector<ActivationSite> activation_sites(models::Network& network,
                                             const torch::Tensor& images) {
  std::vector<ActivationSite> sites;
  NeuronWatch here(network, [&](const ActivationSite& site, const torch::Tensor&,
                                const torch::Tensor&) { sites.push_back(site); });
  const torch::NoGradGuard no_grad;
  const StateGuard unchanged(network);
  network.eval();
  nn::set_context_mode(network, nn::ContextMode::tracked);
  const Watching watching(&here);
  network.forward(images);
  return sites;
}

std::vector<Neuron> choose_neurons(const std::vector<ActivationSite>& sites) {
  constexpr int64_t kChannels = 3;
  std::vector<Neuron> neurons;
  if (sites.empty()) return neurons;
  for (const size_t index : std::set<size_t>{0, sites.size() / 2, sites.size() - 1}) {
    for (int64_t c = 0; c < std::min(kChannels, sites[index].channels); ++c) {
      neurons.push_back({sites[index], c, {}, {}});
    }
  }
  return neurons;
}

void watch_neurons(const models::Network& network, int64_t sites, std::vector<Neuron>* neurons,
                   const std::function<void()>& work) {
  NeuronWatch here(network, [&](const ActivationSite& site, const torch::Tensor& before,
                                const torch::Tensor& after) {
    for (Neuron& neuron : *neurons) {
      if (neuron.site.index != site.index % sites) continue;
      neuron.before.push_back(values_of(before, neuron.channel));
      neuron.after.push_back(values_of(after, neuron.channel));
    }
  });
  const Watching watching(&here);
  work();
}

}  // namespace qact::eval
