#include "qact/run/optimiser.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace qact::run {
namespace {

struct Trained {
  explicit Trained(const TrainConfig& config) {
    torch::manual_seed(3);
    network = models::make("mlp", {.classes = 3, .channels = 1, .image_size = 16});
    optimiser = std::make_unique<Optimiser>(config, *network);
  }

  void step(int number) {
    optimiser->zero_grad();
    const torch::Tensor images = torch::arange(2 * 256).to(torch::kFloat).view({2, 1, 16, 16});
    network->forward(images * number * 0.01).logits.square().sum().backward();
    optimiser->step(0.01 / number);
  }

  std::shared_ptr<models::Network> network;
  std::unique_ptr<Optimiser> optimiser;
};

TrainConfig with(const std::string& opt, bool nesterov = false) {
  TrainConfig config;
  config.opt = opt;
  config.nesterov = nesterov;
  return config;
}

TEST(Optimiser, GoesOnFromItsState) {
  for (const TrainConfig& config : {with("sgd"), with("sgd", true), with("adam")}) {
    Trained whole(config);
    whole.step(1);
    whole.step(2);
    Trained other(config);
    safetensors::load_state(*other.network, safetensors::state_of(*whole.network), "test");
    safetensors::Tensors state;
    for (const auto& [name, tensor] : whole.optimiser->state()) state[name] = tensor.clone();
    EXPECT_FALSE(state.empty());
    other.optimiser->load(state, "test");
    whole.step(3);
    other.step(3);
    const auto expected = safetensors::state_of(*whole.network);
    for (const auto& [name, tensor] : safetensors::state_of(*other.network)) {
      EXPECT_TRUE(torch::equal(tensor, expected.at(name))) << config.opt << ": " << name;
    }
  }
}

TEST(Optimiser, RefusesAStateOfAnother) {
  Trained trained(with("sgd"));
  trained.step(1);
  const safetensors::Tensors state = trained.optimiser->state();
  const auto message = [&](const TrainConfig& config, const safetensors::Tensors& tensors) {
    try {
      Trained(config).optimiser->load(tensors, "FILE");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message(with("adam"), state).find("FILE: expected only tensors that the optimiser has"),
            std::string::npos);
  safetensors::Tensors wrong = state;
  wrong["fc1.bias.momentum_buffer"] = torch::zeros({2});
  EXPECT_NE(message(with("sgd"), wrong).find("'fc1.bias.momentum_buffer'"), std::string::npos);
}

}  // namespace
}  // namespace qact::run
