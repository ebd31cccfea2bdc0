#include "qact/toy/network.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "qact/nn/quantile_activation.h"

namespace qact::toy {
namespace {

using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::Sequential;

enum class Activation { relu, batch_norm, batch_norm_relu, qact, qact_without_norm };

torch::nn::BatchNorm1d batch_norm(int64_t channels) {
  return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(channels).track_running_stats(false));
}

void push_activation(Sequential& network, Activation activation, int64_t channels, bool affine_in) {
  if (activation == Activation::batch_norm || activation == Activation::batch_norm_relu) {
    network->push_back(batch_norm(channels));
  }
  if (activation == Activation::relu || activation == Activation::batch_norm_relu) {
    network->push_back(ReLU());
  }
  if (activation == Activation::qact || activation == Activation::qact_without_norm) {
    network->push_back(nn::QuantileActivation(nn::QuantileActivationOptions(channels)
                                                  .norm_in(activation == Activation::qact)
                                                  .affine_in(affine_in)
                                                  .context_mode(nn::ContextMode::batch)));
  }
}

// Two layers, then the activation under test. Normalising or ranking the two input coordinates
// themselves would remove the context's position, which decides the label.
template <Activation activation>
Sequential circle(int64_t width) {
  Sequential network(Linear(2, width), ReLU(), Linear(width, width));
  push_activation(network, activation, width, /*affine_in=*/true);
  network->push_back(Linear(width, 2));
  return network;
}

// The activation under test comes first. With no layer in front of it, training the scale of its
// inner norm does harm, so that norm has no affine parameters.
template <Activation activation>
Sequential monotone(int64_t width) {
  Sequential network;
  push_activation(network, activation, 8, /*affine_in=*/false);
  network->push_back(Linear(8, width));
  network->push_back(ReLU());
  network->push_back(Linear(width, width));
  network->push_back(ReLU());
  network->push_back(Linear(width, 2));
  return network;
}

}  // namespace

std::span<const ToyNetwork> toy_networks() {
  static const ToyNetwork networks[] = {
      {"circle", "relu", "ReLU", circle<Activation::relu>},
      {"circle", "batchnorm_relu", "BatchNorm + ReLU", circle<Activation::batch_norm_relu>},
      {"circle", "qact", "QAct", circle<Activation::qact>},
      {"monotone", "relu", "ReLU", monotone<Activation::relu>},
      {"monotone", "batchnorm_relu", "BatchNorm + ReLU", monotone<Activation::batch_norm_relu>},
      {"monotone", "batchnorm", "BatchNorm alone", monotone<Activation::batch_norm>},
      {"monotone", "qact", "QAct", monotone<Activation::qact>},
      {"monotone", "qact_without_norm", "QAct without inner norm",
       monotone<Activation::qact_without_norm>},
  };
  return networks;
}

void initialise(Sequential& network, base::Random& random) {
  torch::NoGradGuard no_grad;
  for (const auto& module : network->modules(/*include_self=*/false)) {
    auto* linear = module->as<Linear>();
    if (!linear) continue;
    const double bound = 1 / std::sqrt(static_cast<double>(linear->options.in_features()));
    for (torch::Tensor parameter : {linear->weight, linear->bias}) {
      float* values = parameter.mutable_data_ptr<float>();
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        values[i] = static_cast<float>(bound * (2 * random.uniform() - 1));
      }
    }
  }
}

}  // namespace qact::toy
