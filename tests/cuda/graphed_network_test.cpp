// Replayed from CUDA graphs, a network gives the same gradients as without them, step by step as
// its parameters change.
#include "qact/train/graphed_network.h"

#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include "qact/models/autocast.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

// Of the logits, or of the embedding alone, which leaves the head without a gradient.
torch::Tensor loss_of(const models::NetworkOutput& output, const torch::Tensor& labels,
                      bool by_logits) {
  return by_logits ? torch::cross_entropy_loss(output.logits.to(torch::kFloat), labels)
                   : output.embedding.to(torch::kFloat).abs().mean();
}

void compare(const std::string& activation, bool mixed, bool channels_last, bool by_logits) {
  SCOPED_TRACE(activation + (mixed ? " bfloat16" : " float32") +
               (channels_last ? " channels_last" : "") + (by_logits ? " logits" : " embedding"));
  const c10::StreamGuard stream(train::GraphedNetwork::side_stream(torch::kCUDA));
  torch::manual_seed(1);
  const auto network =
      models::make("lenet", {.channels = 1, .image_size = 28, .activation = activation});
  network->to(torch::kCUDA);
  if (channels_last) network->use_channels_last();
  const std::vector<torch::Tensor> parameters = network->parameters();
  const auto forward = [&](const torch::Tensor& images) {
    const models::Autocast autocast(torch::kCUDA, mixed);
    return network->forward(images);
  };
  const auto images = [] { return torch::randn({64, 1, 28, 28}, torch::kCUDA); };
  for (int i = 0; i < train::GraphedNetwork::kWarmUpSteps; ++i) forward(images());
  train::GraphedNetwork graphed(images(), forward);
  torch::optim::SGD optimizer(parameters, 0.05);

  for (int step = 0; step < 4; ++step) {
    const torch::Tensor x = images(), y = torch::randint(10, {64}, torch::kCUDA).to(torch::kLong);
    const torch::Tensor expected = loss_of(forward(x), y, by_logits);
    const auto gradients =
        torch::autograd::grad({expected}, parameters, {}, {}, false, /*allow_unused=*/true);
    const torch::Tensor loss = loss_of(graphed.forward(x), y, by_logits);
    loss.backward();
    graphed.backward();
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-2);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const torch::Tensor found = parameters[i].grad();
      ASSERT_EQ(found.defined(), gradients[i].defined());
      if (!found.defined()) continue;
      // A bias in front of a norm has the gradient 0, and in either what rounding makes of it.
      const double slack = 0.02 * gradients[i].norm().item<double>() + 1e-4;
      EXPECT_LT((found - gradients[i]).norm().item<double>(), slack)
          << network->named_parameters().keys()[i] << ", step " << step;
    }
    optimizer.step();
  }
}

TEST(CudaGraphedNetwork, GivesTheSameGradients) {
  for (const char* activation : {"relu", "qact"}) {
    for (const bool mixed : {false, true}) {
      compare(activation, mixed, /*channels_last=*/mixed, /*by_logits=*/true);
    }
    compare(activation, /*mixed=*/false, /*channels_last=*/false, /*by_logits=*/false);
  }
}

}  // namespace
}  // namespace qact::tests
