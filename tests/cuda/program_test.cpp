// The layer in a program on CUDA: devices, autocast, and training that ends in the same place with
// either algorithm.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "qact/nn/quantile_activation.h"
#include "qact/ops/quantile_layer.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

TEST(CudaProgram, AnotherDevice) {
  if (torch::cuda::device_count() < 2) GTEST_SKIP() << "one device here";
  const torch::Tensor x = torch::randn({64, 8, 16, 16});
  const auto y = [&](torch::Device device) {
    return std::get<0>(ops::quantile_layer(x.to(device))).cpu();
  };
  EXPECT_TRUE(y(torch::Device(torch::kCUDA, 1)).equal(y(torch::Device(torch::kCUDA, 0))));
}

TEST(CudaProgram, AutocastKeepsStatisticsInFloat) {
  nn::QuantileActivation layer(8);
  layer->to(torch::kCUDA);
  const torch::Tensor x = torch::randn({64, 8, 8, 8}, torch::kCUDA);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  const torch::Tensor y = layer->forward(x);
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCUDA, false);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(layer->running_mean_in.scalar_type(), torch::kFloat);
  const auto plain = layer->forward(x.to(torch::kBFloat16));
  EXPECT_TRUE(y.equal(plain));
}

// Two classes told apart by the spread of their features.
double accuracy_of(const char* algorithm, int seed, std::vector<double>& losses) {
  torch::manual_seed(seed);
  const auto device = torch::kCUDA;
  torch::nn::Linear first(torch::nn::LinearOptions(16, 32)),
      second(torch::nn::LinearOptions(32, 2));
  nn::QuantileActivation act(nn::QuantileActivationOptions(32).algorithm(algorithm));
  torch::nn::Sequential net(first, act, second);
  net->to(device);
  torch::optim::Adam optimiser(net->parameters(), 1e-2);
  const auto batch = [&] {
    const torch::Tensor label =
        torch::randint(2, {1024}, torch::dtype(torch::kLong).device(device));
    const torch::Tensor x =
        torch::randn({1024, 16}, device) + 0.6 * label.unsqueeze(1).to(torch::kFloat);
    return std::make_pair(x, label);
  };
  for (int step = 0; step < 150; ++step) {
    const auto [x, label] = batch();
    optimiser.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(net->forward(x), label);
    loss.backward();
    optimiser.step();
    if (step >= 130) losses.push_back(loss.item<double>());
  }
  const auto [x, label] = batch();
  return (net->forward(x).argmax(1) == label).to(torch::kFloat).mean().item<double>();
}

TEST(CudaProgram, ExactAndBinnedTrainToTheSamePlace) {
  double mean[2] = {0, 0}, accuracy[2] = {0, 0};
  for (int seed = 0; seed < 3; ++seed) {
    const char* algorithms[] = {"exact", "binned"};
    for (int a : {0, 1}) {
      std::vector<double> losses;
      accuracy[a] += accuracy_of(algorithms[a], seed, losses) / 3;
      for (const double loss : losses) mean[a] += loss / static_cast<double>(losses.size()) / 3;
    }
  }
  EXPECT_NEAR(mean[0], mean[1], 0.02);
  EXPECT_NEAR(accuracy[0], accuracy[1], 0.02);
  EXPECT_GT(accuracy[0], 0.8);
}

}  // namespace
}  // namespace qact::tests
