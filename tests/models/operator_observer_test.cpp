#include "qact/models/operator_observer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "qact/models/network.h"

namespace qact::models {
namespace {

TEST(OperatorObserver, ReportsTheNetworksOperatorsAndTheirLayers) {
  const auto network = make("lenet", {.channels = 1, .image_size = 28, .activation = "qact"});
  network->eval();
  const torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::randn({2, 1, 28, 28});
  std::vector<std::string> layers;
  torch::Tensor first_input, last_output;
  const auto observe = [&](const OperatorCall& call) {
    if (!first_input.defined()) first_input = call.input;
    if (!call.outputs.empty() && call.outputs[0].isTensor()) {
      last_output = call.outputs[0].toTensor();
    }
    if (call.reads_layer) layers.push_back(call.layer);
  };
  torch::Tensor logits;
  observe_operators(*network, observe, [&] { logits = network->forward(images).logits; });
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  EXPECT_EQ(layers, (std::vector<std::string>{"conv1", "activation1", "conv2", "activation2", "fc1",
                                              "activation3", "fc2", "activation4", "fc3"}));
  EXPECT_TRUE(first_input.is_same(images));
  EXPECT_TRUE(last_output.is_same(logits));
}

TEST(OperatorObserver, EndsWithTheWorkAlsoByAnException) {
  const auto network = make("mlp", {});
  int calls = 0;
  const auto observe = [&](const OperatorCall&) { ++calls; };
  EXPECT_THROW(observe_operators(*network, observe, [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  torch::ones({2}).add(1);
  EXPECT_EQ(calls, 0);
  observe_operators(*network, observe, [] { torch::ones({2}).add(1); });
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace qact::models
