#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "qact/adapt/affine_parameters.h"
#include "qact/adapt/method.h"
#include "qact/nn/batch_norm.h"
#include "tests/adapt/tensor_images.h"
#include "tests/base/message.h"

namespace qact::adapt {
namespace {

std::unique_ptr<Method> tent(models::Network& network) { return find_method("tent").make(network); }

// The loss from its definition: the mean over images of the entropy of their probabilities.
double plain_entropy(const torch::Tensor& logits) {
  double sum = 0;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    double total = 0;
    std::vector<double> p;
    for (int64_t k = 0; k < logits.size(1); ++k) {
      p.push_back(std::exp(logits[i][k].item<double>()));
      total += p.back();
    }
    for (const double each : p) sum -= each / total * std::log(each / total);
  }
  return sum / static_cast<double>(logits.size(0));
}

// Adam (Kingma and Ba 2015) on one parameter, in double.
struct PlainAdam {
  torch::Tensor mean, square;
  int64_t steps = 0;

  torch::Tensor step(const torch::Tensor& parameter, const torch::Tensor& gradient) {
    const torch::Tensor g = gradient.to(torch::kDouble);
    if (steps++ == 0) mean = torch::zeros_like(g), square = torch::zeros_like(g);
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    const torch::Tensor m = mean / (1 - std::pow(0.9, steps));
    const torch::Tensor v = square / (1 - std::pow(0.999, steps));
    return parameter.to(torch::kDouble) - 1e-3 * m / (v.sqrt() + 1e-8);
  }
};

// The derivative of the plain loss by one value of a parameter.
double plain_derivative(models::Network& network, const torch::Tensor& images,
                        const torch::Tensor& parameter, int64_t at) {
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-5;
  torch::Tensor value = parameter.view(-1)[at];
  value.add_(kStep);
  const double above = plain_entropy(network.forward(images).logits);
  value.sub_(2 * kStep);
  const double below = plain_entropy(network.forward(images).logits);
  value.add_(kStep);
  return (above - below) / (2 * kStep);
}

// The first step of Adam moves every value by the learning rate against its derivative's sign.
TEST(Tent, DescendsThePlainLoss) {
  const auto network = batch_network("relu");
  network->to(torch::kDouble);
  const torch::Tensor images = random_images(12).to(torch::kDouble);
  const std::vector<torch::Tensor> affine = affine_parameters(*network);
  std::vector<double> derivatives;
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& each : affine) {
    derivatives.push_back(plain_derivative(*network, images, each, 5));
    before.push_back(each.detach().clone());
  }
  const auto method = tent(*network);
  adapted_logits(*method, TensorImages(images), 12);
  for (size_t i = 0; i < affine.size(); ++i) {
    const double moved = (affine[i] - before[i])[5].item<double>(), d = derivatives[i];
    ASSERT_GT(std::abs(d), 1e-7) << i;
    EXPECT_NEAR(moved, -1e-3 * d / (std::abs(d) + 1e-8), 1e-5) << i;
  }
}

// Several batches: predictions come before the step of their batch, and the optimiser remembers.
TEST(Tent, IsOneStepOfAdamForEachBatch) {
  for (const char* activation : {"relu", "qact"}) {
    const auto network = batch_network(activation), plain = batch_network(activation);
    // Adam takes full steps of gradients that are zero but for rounding, as of a bias in front of a
    // quantile activation's norm. Ranks pass them on, so that there one batch is compared.
    const torch::Tensor images = random_images(activation == std::string("relu") ? 60 : 20);
    const std::vector<torch::Tensor> learn = affine_parameters(*plain);
    std::vector<PlainAdam> adam(learn.size());
    std::vector<torch::Tensor> expected;
    for (const torch::Tensor& batch : images.split(20)) {
      const torch::Tensor logits = plain->forward(batch).logits;
      const torch::Tensor log_p = logits.log_softmax(1);
      const torch::Tensor loss = -(log_p.exp() * log_p).sum(1).mean();
      EXPECT_NEAR(loss.item<double>(), plain_entropy(logits), 1e-5);
      const auto gradients = torch::autograd::grad({loss}, learn);
      const torch::NoGradGuard no_grad;
      expected.push_back(logits.detach());
      for (size_t i = 0; i < learn.size(); ++i) {
        learn[i].copy_(adam[i].step(learn[i], gradients[i]));
      }
    }
    const auto method = tent(*network);
    const torch::Tensor found = adapted_logits(*method, TensorImages(images), 20);
    EXPECT_TRUE(torch::allclose(found, torch::cat(expected), 1e-3, 1e-4))
        << activation << (found - torch::cat(expected)).abs().max();
    EXPECT_FALSE(found.requires_grad());
    const auto adapted = network->parameters(), wanted = plain->parameters();
    for (size_t i = 0; i < adapted.size(); ++i) {
      EXPECT_TRUE(torch::allclose(adapted[i], wanted[i], 1e-3, 2e-4)) << activation << i;
    }
  }
}

TEST(Tent, LeavesTheNetworkAsItWas) {
  for (const char* activation : {"relu", "qact"}) {
    const auto network = batch_network(activation);
    network->parameters().front().set_requires_grad(false);
    const std::vector<torch::Tensor> before = state_of(*network);
    for (const bool by_destructor : {false, true}) {
      const auto method = tent(*network);
      adapted_logits(*method, TensorImages(random_images(40)), 20);
      EXPECT_FALSE(same_state(state_of(*network), before));
      if (by_destructor) continue;
      method->reset();
      EXPECT_TRUE(same_state(state_of(*network), before));
    }
    EXPECT_TRUE(same_state(state_of(*network), before));
    for (const torch::Tensor& each : network->parameters()) {
      EXPECT_FALSE(each.grad().defined());
      EXPECT_EQ(each.requires_grad(), !each.is_same(network->parameters().front()));
    }
  }
}

// A stream that was reset, and one that never was, give the same bits; so does another network.
TEST(Tent, RepeatsBitForBit) {
  const TensorImages images(random_images(60));
  const auto network = batch_network("qact"), other = batch_network("qact");
  const auto method = tent(*network), again = tent(*other);
  const torch::Tensor first = adapted_logits(*method, images, 20);
  EXPECT_TRUE(torch::equal(adapted_logits(*method, images, 20), first));  // prepare() begins anew
  method->reset();
  EXPECT_TRUE(torch::equal(adapted_logits(*method, images, 20), first));
  EXPECT_TRUE(torch::equal(adapted_logits(*again, images, 20), first));
}

// One feature of each image and a boundary at 0, with a norm in front or without.
class Line : public models::Network {
 public:
  explicit Line(bool with_norm)
      : Network({.classes = 2, .channels = 1, .image_size = 1}),
        norm_(with_norm ? register_module("norm", nn::BatchNorm(1)) : nullptr) {
    set_head("fc", 1);
    const torch::NoGradGuard no_grad;
    const auto parameters = named_parameters();
    parameters["fc.weight"].copy_(torch::tensor({{-2.0F}, {2.0F}}));
    parameters["fc.bias"].zero_();
  }

 private:
  torch::Tensor embed(const torch::Tensor& images) override {
    return norm_ ? norm_(images.flatten(1)) : images.flatten(1);
  }

  nn::BatchNorm norm_;
};

// Two classes with a gap between them, the second one rare: the mean of a batch lies within the
// first, where the boundary then is. The gap is where entropy is least.
TEST(Tent, FindsTheGapBetweenClasses) {
  constexpr int64_t kBatch = 50, kImages = 1000 * kBatch;
  torch::manual_seed(4);
  const torch::Tensor labels = (torch::rand({kImages}) < 0.85).to(torch::kLong);
  const torch::Tensor centres = (2 * labels - 1).to(torch::kFloat);
  const TensorImages images((centres + 0.3 * torch::randn({kImages})).view({kImages, 1, 1, 1}));
  const auto network = std::make_shared<Line>(true);
  network->eval();
  nn::set_context_mode(*network, nn::ContextMode::batch);
  const auto accuracy_at_last = [&](const char* name) {
    const torch::Tensor logits =
        adapted_logits(*find_method(name).make(*network), images, kBatch).slice(0, -10'000);
    const torch::Tensor right = logits.argmax(1) == labels.slice(0, -10'000);
    return right.to(torch::kDouble).mean().item<double>();
  };
  EXPECT_LT(accuracy_at_last("none"), 0.9);
  EXPECT_GT(accuracy_at_last("tent"), 0.98);
  EXPECT_LT(accuracy_at_last("none"), 0.9);  // it was left as it was
}

TEST(Tent, RefusesANetworkWithoutNorms) {
  const auto network = std::make_shared<Line>(false);
  EXPECT_EQ(message_of([&] { tent(*network); }),
            "[tent] expected a network with norms or quantile activations, whose affine parameters "
            "it adapts, got one without");
}

// One image has no statistics in a layer of single values, and no step is made.
TEST(Tent, ABatchOfOneImageFailsAndLeavesTheNetworkAsItWas) {
  const auto network = batch_network("relu");
  const std::vector<torch::Tensor> before = state_of(*network);
  {
    const auto method = tent(*network);
    expect_in("expected more than one value per channel",
              message_of([&] { adapted_logits(*method, TensorImages(random_images(1)), 1); }));
  }
  EXPECT_TRUE(same_state(state_of(*network), before));
  const auto grouped = batch_network("relu", "group");
  EXPECT_EQ(adapted_logits(*tent(*grouped), TensorImages(random_images(2)), 1).size(0), 2);
}

}  // namespace
}  // namespace qact::adapt
