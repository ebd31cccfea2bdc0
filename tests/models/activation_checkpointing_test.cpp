#include "qact/models/activation_checkpointing.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/models/autocast.h"
#include "qact/models/network.h"

namespace qact::models {
namespace {

struct Trained {
  std::shared_ptr<Network> network;
  torch::Tensor loss;
};

// Two batches, whose gradients add up.
Trained train(const std::string& name, const NetworkOptions& options, bool checkpoint, bool mixed) {
  torch::manual_seed(1);
  Trained result{make(name, options), {}};
  if (checkpoint) result.network->checkpoint_activations();
  for (int batch = 0; batch < 2; ++batch) {
    const torch::Tensor images = torch::randn({4, 3, 16, 16}), labels = torch::randint(10, {4});
    const auto forward = [&] {
      const Autocast autocast(torch::kCPU, mixed);
      return result.network->forward(images).logits.to(torch::kFloat);
    };
    result.loss = torch::cross_entropy_loss(forward(), labels);
    result.loss.backward();
  }
  return result;
}

// Against the same network without checkpointing.
TEST(ActivationCheckpointing, GradientsAndBuffersAreTheSameBitForBit) {
  const struct {
    const char *name, *activation, *placement;
    bool mixed;
  } cases[] = {{"resnet18", "qact", "reference", false},
               {"resnet18", "qact", "all", true},
               {"resnet26", "prelu", "early", false},
               {"densenet", "relu", "reference", false}};
  for (const auto& each : cases) {
    SCOPED_TRACE(std::string(each.name) + " " + each.activation);
    const NetworkOptions options{
        .image_size = 16, .activation = each.activation, .placement = each.placement};
    const Trained expected = train(each.name, options, false, each.mixed);
    const Trained found = train(each.name, options, true, each.mixed);
    EXPECT_TRUE(torch::equal(expected.loss, found.loss));
    const auto parameters = found.network->named_parameters();
    for (const auto& item : expected.network->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_TRUE(torch::equal(item.value().grad(), parameters[item.key()].grad())) << item.key();
    }
    const auto buffers = found.network->named_buffers();
    for (const auto& item : expected.network->named_buffers()) {
      EXPECT_TRUE(torch::equal(item.value(), buffers[item.key()])) << item.key();
    }
  }
}

TEST(ActivationCheckpointing, RunsTheSegmentAgainInTheBackwardPass) {
  int calls = 0;
  const auto segment = [&](const torch::Tensor& x) {
    ++calls;
    return x.sin().exp();
  };
  const torch::Tensor x = torch::randn({5}, torch::requires_grad());
  const torch::Tensor y = checkpoint(segment, {}, x);
  EXPECT_EQ(calls, 1);
  y.sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(torch::allclose(x.grad(), (x.cos() * x.sin().exp()).detach()));
  const torch::NoGradGuard no_grad;
  checkpoint(segment, {}, x);
  EXPECT_EQ(calls, 3);
}

TEST(ActivationCheckpointing, NeedsBlocks) {
  for (const std::string& name : names()) {
    const auto network = make(name, {});
    const bool blocks = name != "lenet" && name != "mlp" && name != "vgg16";
    if (blocks) {
      EXPECT_NO_THROW(network->checkpoint_activations()) << name;
    } else {
      EXPECT_THROW(network->checkpoint_activations(), c10::Error) << name;
    }
  }
}

}  // namespace
}  // namespace qact::models
