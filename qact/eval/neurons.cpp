#include "qact/eval/neurons.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "qact/models/operator_observer.h"
#include "qact/nn/quantile_activation.h"
#include "qact/nn/state_guard.h"

namespace qact::eval {
namespace {

// Each activation is one of these operators. A quantile activation is observed as a whole: the
// operators inside it, and whether the outer norm is one of them, depend on the context mode.
std::string kind_of(std::string_view operator_name) {
  static const std::map<std::string_view, std::string> kKinds = {{"aten::relu", "relu"},
                                                                 {"aten::prelu", "prelu"},
                                                                 {"aten::selu", "selu"},
                                                                 {nn::kOperatorName, "qact"}};
  const auto found = kKinds.find(operator_name);
  return found == kKinds.end() ? "" : found->second;
}

using ObserveActivation = std::function<void(
    const ActivationLayer& layer, const torch::Tensor& input, const torch::Tensor& output)>;

// Calls `observe` for each activation that `work` runs while the network is in eval(). Indices
// count on from one forward pass to the next.
void observe_activations(const models::Network& network, const ObserveActivation& observe,
                         const std::function<void()>& work) {
  int64_t calls = 0;
  const auto on_operator = [&](const models::OperatorCall& call) {
    const std::string kind = kind_of(call.name);
    // A call without outputs has thrown.
    if (kind.empty() || call.outputs.empty() || network.is_training()) return;
    const bool has_weights = kind == "qact" || kind == "prelu";
    observe({calls++, has_weights ? call.layer : "after " + call.layer, kind, call.input.size(1)},
            call.input, call.outputs[0].toTensor());
  };
  models::observe_operators(network, on_operator, work);
}

torch::Tensor values_of(const torch::Tensor& x, int64_t channel) {
  return x.select(1, channel).flatten().to(torch::kCPU, torch::kFloat).clone();
}

}  // namespace

std::vector<ActivationLayer> activation_layers(models::Network& network,
                                               const torch::Tensor& images) {
  std::vector<ActivationLayer> layers;
  const torch::NoGradGuard no_grad;
  const nn::StateGuard guard(network);
  network.eval();
  nn::set_context_mode(network, nn::ContextMode::tracked);
  observe_activations(
      network,
      [&](const ActivationLayer& layer, const torch::Tensor&, const torch::Tensor&) {
        layers.push_back(layer);
      },
      [&] { network.forward(images); });
  return layers;
}

std::vector<Neuron> choose_neurons(const std::vector<ActivationLayer>& layers) {
  std::vector<Neuron> neurons;
  if (layers.empty()) return neurons;
  for (const size_t index : std::set<size_t>{0, layers.size() / 2, layers.size() - 1}) {
    const int64_t channels = layers[index].channels;
    for (const int64_t channel : std::set<int64_t>{0, channels / 2, channels - 1}) {
      neurons.push_back({layers[index], channel, {}, {}});
    }
  }
  return neurons;
}

void observe_neurons(const models::Network& network, int64_t layers, std::vector<Neuron>* neurons,
                     const std::function<void()>& work) {
  const auto observe = [&](const ActivationLayer& layer, const torch::Tensor& input,
                           const torch::Tensor& output) {
    for (Neuron& neuron : *neurons) {
      if (neuron.layer.index != layer.index % layers) continue;
      neuron.inputs.push_back(values_of(input, neuron.channel));
      neuron.outputs.push_back(values_of(output, neuron.channel));
    }
  };
  observe_activations(network, observe, work);
}

}  // namespace qact::eval
