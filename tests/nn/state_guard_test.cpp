#include "qact/nn/state_guard.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "qact/models/network.h"
#include "qact/nn/batch_norm.h"
#include "qact/nn/context_mode.h"
#include "qact/safetensors/torch/tensors.h"

namespace qact::nn {
namespace {

// All that a forward pass depends on, and which parameters learn, as text.
std::string state_text(const torch::nn::Module& network) {
  std::ostringstream text;
  for (const auto& [name, tensor] : safetensors::state_dict(network)) {
    text << name << tensor.to(torch::kDouble).sum().item<double>() << "\n";
  }
  for (const auto& item : network.named_modules()) {
    text << item.key() << item.value()->is_training();
    const auto add = [&](const auto& options) {
      text << static_cast<int>(options.context_mode()) << " " << options.prior() << " "
           << options.momentum().value_or(-1);
    };
    if (const auto* layer = item.value()->as<QuantileActivation>()) add(layer->options);
    if (const auto* layer = item.value()->as<BatchNorm>()) add(layer->options);
    text << "\n";
  }
  for (const torch::Tensor& parameter : network.parameters()) text << parameter.requires_grad();
  return text.str();
}

TEST(StateGuard, RestoresAllAlsoAfterAnException) {
  torch::manual_seed(1);
  const auto network =
      models::make("lenet", {.classes = 3, .channels = 1, .image_size = 28, .activation = "qact"});
  const torch::NoGradGuard no_grad;
  network->forward(torch::randn({6, 1, 28, 28}));
  network->eval();
  network->children().front()->train();  // a part of it, as when the rest is frozen
  set_context_mode(*network, ContextMode::prior, 3);
  const std::string before = state_text(*network);
  for (const bool throws : {false, true}) {
    try {
      const StateGuard guard(*network);
      set_context_mode(*network, ContextMode::stream, 7);
      set_context_momentum(*network, 0.5);
      network->forward(torch::randn({6, 1, 28, 28}));
      network->train();
      network->forward(torch::randn({6, 1, 28, 28}));
      ASSERT_NE(state_text(*network), before);
      if (throws) throw std::runtime_error("half-way");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(state_text(*network), before);
  }
}

TEST(StateGuard, RestoresTheParametersThatItIsGiven) {
  torch::manual_seed(1);
  const auto network =
      models::make("lenet", {.classes = 3, .channels = 1, .image_size = 28, .activation = "qact"});
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parameters = network->parameters();
  parameters[0].set_requires_grad(false);
  const torch::Tensor unlisted = parameters.back(), value = unlisted.clone();
  parameters.pop_back();
  const std::string before = state_text(*network);
  {
    const StateGuard guard(*network, parameters);
    for (const torch::Tensor& each : network->parameters()) {
      each.set_requires_grad(!each.requires_grad());
      each.add_(1);
    }
    ASSERT_NE(state_text(*network), before);
  }
  EXPECT_NE(state_text(*network), before);  // the last one, which was not listed
  unlisted.copy_(value);
  EXPECT_EQ(state_text(*network), before);
}

}  // namespace
}  // namespace qact::nn
