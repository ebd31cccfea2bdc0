// What a few neurons of a network are given and give: their pre-activations and activations.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "qact/models/network.h"

namespace qact::eval {

// A call of an activation, as the network makes them one after the other.
struct ActivationSite {
  int64_t index = 0;
  std::string layer;  // its name, or "after NAME" of the layer before where it has no weights
  std::string kind;   // qact, relu, prelu or selu
  int64_t channels = 0;
};
// `images` is a batch that the network takes; it leaves the network as it was.
std::vector<ActivationSite> activation_sites(models::Network& network, const torch::Tensor& images);

struct Neuron {
  ActivationSite site;
  int64_t channel = 0;
  // What the site reads, and what the next layer reads, in every context mode: for a quantile
  // activation, before its inner and after its outer norm.
  // Over all batches, one-dimensional, on the CPU.
  std::vector<torch::Tensor> before, after;
};

// The first three channels at the first, the middle and the last site.
std::vector<Neuron> choose_neurons(const std::vector<ActivationSite>& sites);

// Runs `work` on this thread and adds to the neurons what passes through them while the network
// is in eval(). `sites` is how many there are in a pass.
void watch_neurons(const models::Network& network, int64_t sites, std::vector<Neuron>* neurons,
                   const std::function<void()>& work);

}  // namespace qact::eval
