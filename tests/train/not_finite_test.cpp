#include "qact/train/not_finite.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "qact/models/network.h"

namespace qact::train {
namespace {

std::shared_ptr<models::Network> small(const std::string& name, const std::string& activation) {
  torch::manual_seed(1);
  models::NetworkOptions options;
  options.channels = 1;
  options.image_size = 16;
  options.activation = activation;
  return models::make(name, options);
}

TEST(NotFinite, NamesTheFirstLayer) {
  const torch::Tensor images = torch::randn({4, 1, 16, 16});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* activation : {"relu", "qact"}) {
    for (const char* layer : {"conv1", "bn2", "fc1", "fc3"}) {
      const auto network = small("lenet", activation);
      if (!network->named_modules().contains(layer)) continue;  // QAct has no norm before it
      const auto forward = [&] { network->forward(images); };
      EXPECT_EQ(first_not_finite(*network, forward), "");
      torch::NoGradGuard no_grad;
      network->named_parameters()[std::string(layer) + ".weight"].view({-1})[0] = infinity;
      EXPECT_TRUE(
          first_not_finite(*network, forward).starts_with("layer " + std::string(layer) + " ("))
          << first_not_finite(*network, forward);
    }
  }
}

TEST(NotFinite, NamesAQuantileActivation) {
  const auto network = small("lenet", "qact");
  torch::NoGradGuard no_grad;
  network->named_parameters()["activation2.bias_out"].view({-1})[0] =
      std::numeric_limits<float>::infinity();
  const torch::Tensor images = torch::randn({4, 1, 16, 16});
  EXPECT_EQ(first_not_finite(*network, [&] { network->forward(images); }),
            "layer activation2 (qact::QuantileActivation)");
}

TEST(NotFinite, NamesWhatFollowsALayerAndTheInput) {
  const auto network = small("mlp", "relu");
  const torch::Tensor images = torch::randn({4, 1, 16, 16});
  const std::string follows =
      first_not_finite(*network, [&] { network->forward(images).logits.mul(0).log(); });
  EXPECT_TRUE(follows.starts_with("what follows layer fc4 (aten::log")) << follows;
  const std::string input =
      first_not_finite(*network, [&] { network->forward(images.mul(0).log()); });
  EXPECT_TRUE(input.starts_with("the input")) << input;
}

TEST(NotFinite, LetsErrorsThrough) {
  const auto network = small("mlp", "relu");
  EXPECT_THROW(first_not_finite(*network, [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(first_not_finite(*network, [] {}), "");
}

}  // namespace
}  // namespace qact::train
