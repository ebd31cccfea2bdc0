#include "qact/adapt/method.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/adapt/affine_parameters.h"
#include "qact/nn/activation.h"
#include "tests/adapt/tensor_images.h"
#include "tests/base/message.h"

namespace qact::adapt {
namespace {

TEST(Methods, AreFoundByName) {
  for (const MethodInfo& method : methods()) EXPECT_EQ(&find_method(method.name), &method);
  EXPECT_EQ(message_of([] { find_method("Tent"); }),
            "[adapt] expected one of none, tent, got 'Tent'");
  EXPECT_TRUE(find_method("none").works_in("augment"));
  EXPECT_TRUE(find_method("tent").works_in("batch"));
  EXPECT_FALSE(find_method("tent").works_in("tracked"));
}

TEST(None, IsAForwardPass) {
  const auto network = batch_network("qact");
  const torch::Tensor images = random_images(30);
  const std::vector<torch::Tensor> before = state_of(*network);
  const auto method = find_method("none").make(*network);
  const torch::Tensor found = adapted_logits(*method, TensorImages(images), 30);
  method->reset();
  EXPECT_TRUE(torch::equal(found, network->forward(images).logits));
  EXPECT_FALSE(found.requires_grad());
  EXPECT_TRUE(same_state(state_of(*network), before));
}

// Three hidden layers: a norm each, and with QAct a layer of two norms each.
TEST(AffineParameters, AreThoseOfNormsAndQuantileActivations) {
  const auto count = [](const char* activation, const char* norm) {
    return affine_parameters(*batch_network(activation, norm)).size();
  };
  EXPECT_EQ(count("relu", "batch"), 3u * 2);
  EXPECT_EQ(count("relu", "group"), 3u * 2);
  EXPECT_EQ(count("prelu", "batch"), 3u * 2);  // not its slopes
  EXPECT_EQ(count("bn-relu", "batch"), 6u * 2);
  EXPECT_EQ(count("qact", "batch"), 3u * (2 + 4));
}

// A new norm must be among those that affine_parameters() knows.
TEST(AffineParameters, HasThoseOfEveryActivation) {
  for (const std::string& activation : nn::activation_names()) {
    const auto network = models::make(
        "lenet", {.channels = 1, .image_size = 28, .activation = activation, .placement = "split"});
    size_t expected = 0;
    for (const auto& module : network->modules()) {
      const bool other = module->as<torch::nn::Linear>() || module->as<torch::nn::Conv2d>() ||
                         module->as<torch::nn::PReLU>();
      if (!other) expected += module->parameters(/*recurse=*/false).size();
    }
    EXPECT_EQ(affine_parameters(*network).size(), expected) << activation;
  }
}

}  // namespace
}  // namespace qact::adapt
