#include "qact/train/optimiser.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace qact::train {
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

TEST(Optimiser, ResumesFromItsState) {
  for (const TrainConfig& config : {with("sgd"), with("sgd", true), with("adam")}) {
    Trained whole(config);
    whole.step(1);
    whole.step(2);
    Trained other(config);
    safetensors::load_state_dict(*other.network, safetensors::state_dict(*whole.network), "test");
    safetensors::Tensors state;
    for (const auto& [name, tensor] : whole.optimiser->state_dict()) state[name] = tensor.clone();
    EXPECT_FALSE(state.empty());
    other.optimiser->load_state_dict(state, "test");
    whole.step(3);
    other.step(3);
    const auto expected = safetensors::state_dict(*whole.network);
    for (const auto& [name, tensor] : safetensors::state_dict(*other.network)) {
      EXPECT_TRUE(torch::equal(tensor, expected.at(name))) << config.opt << ": " << name;
    }
  }
}

// The oracle is torch's own optimiser, which is not fused.
TEST(Optimiser, StepsAsTorchDoes) {
  for (const TrainConfig& config : {with("sgd"), with("sgd", true), with("adam")}) {
    Trained ours(config), theirs(config);
    std::unique_ptr<torch::optim::Optimizer> oracle;
    const auto parameters = theirs.network->parameters();
    if (config.opt == "adam") {
      oracle = std::make_unique<torch::optim::Adam>(
          parameters, torch::optim::AdamOptions(0).weight_decay(config.weight_decay));
    } else {
      oracle =
          std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0)
                                                              .momentum(config.momentum)
                                                              .weight_decay(config.weight_decay)
                                                              .nesterov(config.nesterov));
    }
    for (int step = 0; step < 4; ++step) {
      const auto trained = ours.network->parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (i == 1 && step == 0) continue;  // its first gradient comes later
        const torch::Tensor grad = torch::randn_like(parameters[i]);
        parameters[i].mutable_grad() = grad;
        trained[i].mutable_grad() = grad.clone();
      }
      const double lr = 0.1 / (step + 1);
      oracle->param_groups()[0].options().set_lr(lr);
      oracle->step();
      ours.optimiser->step(lr);
      for (size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_TRUE(torch::allclose(trained[i], parameters[i], 1e-5, 1e-6)) << config.opt;
      }
    }
    ours.optimiser->zero_grad();
    EXPECT_FALSE(ours.network->parameters()[0].grad().defined());
  }
}

TEST(Optimiser, RefusesAStateOfAnother) {
  Trained trained(with("sgd"));
  trained.step(1);
  const safetensors::Tensors state = trained.optimiser->state_dict();
  const auto message = [&](const TrainConfig& config, const safetensors::Tensors& tensors) {
    try {
      Trained(config).optimiser->load_state_dict(tensors, "FILE");
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
}  // namespace qact::train
