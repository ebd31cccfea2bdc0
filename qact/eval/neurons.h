// The inputs and outputs of a few neurons of a network: their pre-activations and activations.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "qact/models/network.h"

namespace qact::eval {

// An activation of the network.
struct ActivationLayer {
  int64_t index = 0;  // in the order in which the forward pass calls them
  std::string name;   // its own, or "after LAYER" with the layer before it where it has no weights
  std::string kind;   // qact, relu, prelu or selu
  int64_t channels = 0;
};
// `images` is a batch for a forward pass, which leaves the network as it was.
std::vector<ActivationLayer> activation_layers(models::Network& network,
                                               const torch::Tensor& images);

struct Neuron {
  ActivationLayer layer;
  int64_t channel = 0;
  // What the layer reads and what the next layer reads, in every context mode: of a quantile
  // activation, before its inner norm and after its outer norm. A one-dimensional tensor on the CPU
  // for each batch.
  std::vector<torch::Tensor> inputs, outputs;
};

// The first, the middle and the last channel of the first, the middle and the last layer: where
// some channels are ranked in their image, these are the first ones.
std::vector<Neuron> choose_neurons(const std::vector<ActivationLayer>& layers);

// Runs `work` on this thread and adds the inputs and outputs of the neurons while the network is in
// eval(). `layers`: how many activation layers a forward pass has.
void observe_neurons(const models::Network& network, int64_t layers, std::vector<Neuron>* neurons,
                     const std::function<void()>& work);

}  // namespace qact::eval
