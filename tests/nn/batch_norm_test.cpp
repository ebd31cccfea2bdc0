#include "qact/nn/batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/nn/context_mode.h"
#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

constexpr int64_t kChannels = 3;

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// A norm that has been trained a little, with an affine that is not the identity.
BatchNorm trained() {
  torch::manual_seed(3);
  BatchNorm norm(kChannels);
  torch::NoGradGuard no_grad;
  norm->weight.copy_(torch::tensor({0.5, 1.0, -2.0}));
  norm->bias.copy_(torch::tensor({0.1, 0.0, 3.0}));
  for (int i = 0; i < 3; ++i) norm(2 * torch::randn({16, kChannels, 2, 2}) + 1);
  norm->eval();
  return norm;
}

// y = (x - mean) / sqrt(var + eps) * weight + bias, one value at a time.
torch::Tensor plain(const BatchNorm& norm, const torch::Tensor& x, const torch::Tensor& mean,
                    const torch::Tensor& var) {
  torch::Tensor y = torch::empty_like(x);
  for (int64_t c = 0; c < x.size(1); ++c) {
    const double scale = norm->weight[c].item<double>() / std::sqrt(var[c].item<double>() + 1e-5);
    y.select(1, c).copy_((x.select(1, c) - mean[c].item<double>()) * scale +
                         norm->bias[c].item<double>());
  }
  return y;
}

struct Moments {
  torch::Tensor mean, var;  // unbiased
};
Moments moments(const torch::Tensor& x) {
  const torch::Tensor rows = x.transpose(0, 1).flatten(1);
  return {rows.mean(1), rows.var(1, /*unbiased=*/true)};
}

TEST(BatchNorm, IsTorchsInTrainingAndTracked) {
  for (const bool spatial : {true, false}) {
    BatchNorm ours(kChannels);
    torch::nn::BatchNorm1d vectors(kChannels);
    torch::nn::BatchNorm2d planes(kChannels);
    const auto theirs = [&](const torch::Tensor& x) { return spatial ? planes(x) : vectors(x); };
    for (int i = 0; i < 3; ++i) {
      const torch::Tensor x =
          spatial ? torch::randn({5, kChannels, 4, 4}) : torch::randn({5, kChannels});
      EXPECT_TRUE(torch::equal(ours(x), theirs(x)));
    }
    ours->eval(), vectors->eval(), planes->eval();
    const torch::Tensor x =
        spatial ? torch::randn({1, kChannels, 4, 4}) : torch::randn({1, kChannels});
    EXPECT_TRUE(torch::equal(ours(x), theirs(x)));
    EXPECT_TRUE(
        torch::equal(ours->running_var, spatial ? planes->running_var : vectors->running_var));
    EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 3);
  }
}

TEST(BatchNorm, CountsNoBatchThatItRefuses) {
  BatchNorm norm = trained();
  norm->train();
  const int64_t before = norm->num_batches_tracked.item<int64_t>();
  EXPECT_THROW(norm(torch::ones({8, kChannels}, torch::kLong)), c10::Error);
  EXPECT_THROW(norm(torch::ones({1, kChannels})), c10::Error);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), before);
}

TEST(BatchNorm, BatchUsesTheBatchsOwnStatisticsAndKeepsNothing) {
  BatchNorm norm = trained();
  norm->options.context_mode(ContextMode::batch);
  const torch::Tensor x = torch::randn({8, kChannels, 3, 3}) * 5,
                      before = norm->running_mean.clone();
  const torch::Tensor rows = x.transpose(0, 1).flatten(1);
  EXPECT_LT(difference(norm(x), plain(norm, x, rows.mean(1), rows.var(1, false))), 1e-5);
  EXPECT_TRUE(torch::equal(norm->running_mean, before));
  EXPECT_THROW(norm(torch::randn({1, kChannels})), c10::Error);
}

// mean = N/(N+n) running + n/(N+n) batch, and the variance likewise.
TEST(BatchNorm, PriorBlendsByImages) {
  BatchNorm norm = trained();
  for (const double prior : {0.0, 1.0, 16.0, 1e6}) {
    for (const int64_t n : {1, 7}) {
      norm->options.context_mode(ContextMode::prior).prior(prior);
      const torch::Tensor x = torch::randn({n, kChannels, 3, 3}) * 2 - 1;
      const Moments batch = moments(x);
      const double share = static_cast<double>(n) / (prior + static_cast<double>(n));
      const torch::Tensor mean = (1 - share) * norm->running_mean + share * batch.mean;
      const torch::Tensor var = (1 - share) * norm->running_var + share * batch.var;
      EXPECT_LT(difference(norm(x), plain(norm, x, mean, var)), 1e-5) << prior << " " << n;
    }
  }
}

TEST(BatchNorm, StreamMovesFirstAndStays) {
  BatchNorm norm = trained();
  norm->options.context_mode(ContextMode::stream).momentum(0.25);
  torch::Tensor mean = norm->running_mean.clone(), var = norm->running_var.clone();
  for (int i = 0; i < 3; ++i) {
    const torch::Tensor x = torch::randn({4, kChannels, 2, 2}) + 3;
    const Moments batch = moments(x);
    mean = 0.75 * mean + 0.25 * batch.mean;
    var = 0.75 * var + 0.25 * batch.var;
    EXPECT_LT(difference(norm(x), plain(norm, x, mean, var)), 1e-5);
    EXPECT_LT(difference(norm->running_mean, mean), 1e-6);
  }
}

TEST(BatchNorm, IsSetTogetherWithQuantileActivations) {
  torch::nn::Sequential network(torch::nn::Linear(2, kChannels), BatchNorm(kChannels),
                                QuantileActivation(kChannels));
  set_context_mode(*network, ContextMode::prior, 5);
  set_context_momentum(*network, std::nullopt);
  auto* norm = network->ptr(1)->as<BatchNorm>();
  auto* activation = network->ptr(2)->as<QuantileActivation>();
  EXPECT_EQ(norm->options.context_mode(), ContextMode::prior);
  EXPECT_EQ(activation->options.context_mode(), ContextMode::prior);
  EXPECT_EQ(norm->options.prior(), 5);
  EXPECT_EQ(norm->options.momentum(), std::nullopt);
  EXPECT_EQ(activation->options.momentum(), std::nullopt);
  // A cumulative average: the mean over the batches.
  torch::Tensor sum = torch::zeros({kChannels});
  for (int i = 0; i < 3; ++i) {
    const torch::Tensor x = torch::randn({6, 2});
    const torch::Tensor z = network->ptr(0)->as<torch::nn::Linear>()->forward(x);
    sum += z.mean(0).detach();
    network->forward(x);
  }
  EXPECT_LT(difference(norm->running_mean, sum / 3), 1e-6);
  reset_contexts(*network);
  EXPECT_EQ(norm->running_mean.abs().sum().item<double>(), 0);
  EXPECT_EQ(activation->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_THROW(set_context_mode(*network, ContextMode::prior, -1), c10::Error);
  EXPECT_THROW(set_context_momentum(*network, 2.0), c10::Error);
}

}  // namespace
}  // namespace qact::nn
