// The quantile classifier, and activations by name.
#include "qact/nn/quantile_classifier.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "qact/nn/activation.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

using nn::QuantileClassifier;
using nn::QuantileClassifierOptions;

// A classifier whose linear layer passes its input on.
QuantileClassifier identity(int64_t classes) {
  QuantileClassifier classifier(QuantileClassifierOptions(classes, classes));
  torch::NoGradGuard no_grad;
  classifier->linear->weight.copy_(torch::eye(classes));
  classifier->linear->bias.zero_();
  return classifier;
}

TEST(QuantileClassifier, LevelsGrowWithTheNumberOfClasses) {
  const auto levels = [](int64_t classes) {
    return QuantileClassifier(QuantileClassifierOptions(4, classes))->activation->options.levels();
  };
  EXPECT_EQ(levels(2), 100);
  EXPECT_EQ(levels(10), 100);
  EXPECT_EQ(levels(100), 1000);
  EXPECT_EQ(levels(10000), 65535);
  QuantileClassifier chosen(QuantileClassifierOptions(4, 10).levels(20));
  EXPECT_EQ(chosen->activation->options.levels(), 20);
}

TEST(QuantileClassifier, OutputsAreCalibratedToThePrior) {
  torch::manual_seed(1);
  const int64_t classes = 10, n = 5000;
  QuantileClassifier classifier = identity(classes);
  // One sample in K has a logit >= 0 for a class.
  const torch::Tensor owner = torch::arange(n).remainder(classes);
  const torch::Tensor sign = torch::one_hot(owner, classes) * 2 - 1;
  const torch::Tensor logits = torch::rand({n, classes}) * sign;
  const torch::Tensor p = classifier(logits);
  EXPECT_LE((p.mean(0) - 0.1).abs().max().item<double>(), 0.01);
  // A logit of 0 is ranked 1/K.
  const torch::Tensor at_zero = p.masked_select(logits.abs() < 0.01);
  EXPECT_NEAR(at_zero.mean().item<double>(), 0.1, 0.01);
}

TEST(QuantileClassifier, ThePriorMayBeInTheLossInstead) {
  torch::manual_seed(1);
  QuantileClassifier classifier(
      QuantileClassifierOptions(4, 4).class_prior(nn::ClassPrior::loss).levels(50));
  EXPECT_EQ(classifier->activation->options.positive_share(), 0.5);
  const torch::Tensor p = torch::rand({3, 4}), labels = torch::tensor({2, 0, 3});
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      const double each = p[i][k].item<double>();
      expected -=
          labels[i].item<int64_t>() == k ? 0.75 * std::log(each) : 0.25 * std::log(1 - each);
    }
  }
  const torch::Tensor loss = nn::QuantileClassifierImpl::loss(p, labels, nn::ClassPrior::loss);
  EXPECT_NEAR(loss.item<double>(), expected / 12, 1e-6);
}

TEST(QuantileClassifier, CrossEntropyIsFiniteWithManyClasses) {
  torch::manual_seed(2);
  const int64_t classes = 100;
  QuantileClassifier classifier(QuantileClassifierOptions(16, classes));
  const torch::Tensor x = torch::randn({500, 16}), labels = torch::randint(classes, {500});
  for (const bool training : {true, false}) {
    classifier->train(training);
    classifier->zero_grad();
    const torch::Tensor p = classifier(x);
    EXPECT_GE(p.min().item<double>(), 0.5 / 1000 - 1e-7);
    EXPECT_LE(p.max().item<double>(), 1 - 0.5 / 1000 + 1e-7);
    const torch::Tensor loss = nn::QuantileClassifierImpl::loss(p, labels);
    EXPECT_LT(loss.item<double>(), 2);
    loss.backward();
    const torch::Tensor grad = classifier->linear->weight.grad();
    EXPECT_TRUE(torch::isfinite(grad).all().item<bool>());
    EXPECT_GT(grad.norm().item<double>(), 0);
  }
}

TEST(QuantileClassifier, PredictionsBreakTiesByRank) {
  torch::manual_seed(3);
  QuantileClassifier classifier(QuantileClassifierOptions(3, 3).levels(4));
  {
    torch::NoGradGuard no_grad;
    classifier->linear->weight.copy_(torch::eye(3));
    classifier->linear->bias.zero_();
  }
  const torch::Tensor x = torch::randn({300, 3});
  for (const bool training : {true, false}) {
    classifier->train(training);
    const torch::Tensor p = classifier(x), predicted = classifier->predict(x);
    const torch::Tensor best = std::get<0>(p.max(1, true));
    EXPECT_GT((p == best).sum(1).gt(1).sum().item<int64_t>(), 30);  // levels tie often
    // What is predicted is among the best, and is the best by rank.
    EXPECT_TRUE(torch::equal(p.gather(1, predicted.unsqueeze(1)), best));
    EXPECT_TRUE(torch::equal(classifier->activation->rank(x).argmax(1), predicted));
  }
}

TEST(QuantileClassifier, LearnsAndSurvivesSavingAndCloning) {
  torch::manual_seed(4);
  const int64_t classes = 5;
  const torch::Tensor centres = torch::randn({classes, 8}) * 2;
  const torch::Tensor labels = torch::randint(classes, {256});
  const torch::Tensor x = centres.index_select(0, labels) + 0.5 * torch::randn({256, 8});
  QuantileClassifier classifier(QuantileClassifierOptions(8, classes));
  torch::optim::Adam optimizer(classifier->parameters(), torch::optim::AdamOptions(0.05));
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    nn::QuantileClassifierImpl::loss(classifier(x), labels).backward();
    optimizer.step();
  }
  classifier->eval();
  const torch::Tensor predicted = classifier->predict(x);
  EXPECT_GT(predicted.eq(labels).to(torch::kFloat).mean().item<double>(), 0.95);

  std::stringstream file;
  torch::save(classifier, file);
  QuantileClassifier loaded(QuantileClassifierOptions(8, classes));
  torch::load(loaded, file);
  loaded->eval();
  EXPECT_TRUE(torch::equal(loaded(x), classifier(x)));
  const auto clone = std::dynamic_pointer_cast<nn::QuantileClassifierImpl>(classifier->clone());
  clone->eval();
  EXPECT_TRUE(torch::equal(clone->forward(x), classifier(x)));
}

TEST(QuantileClassifier, RefusesWhatItCannotUse) {
  const std::string name = "[QuantileClassifier] expected ";
  const auto with = [](QuantileClassifierOptions options) {
    return message_of([&] { QuantileClassifier classifier(options); });
  };
  EXPECT_EQ(with({0, 2}), name + "in_features > 0, got 0");
  EXPECT_EQ(with({4, 1}), name + "at least 2 classes, got 1");
  EXPECT_EQ(with(QuantileClassifierOptions(4, 3).levels(1)),
            "[QuantileActivation] expected levels in 2..65535, got 1");
  const auto loss = [](const torch::Tensor& p, const torch::Tensor& labels) {
    return message_of([&] { nn::QuantileClassifierImpl::loss(p, labels); });
  };
  const torch::Tensor p = torch::full({2, 3}, 0.5);
  EXPECT_EQ(loss(p, torch::zeros({3}, torch::kLong)),
            name +
                "probabilities of shape (B,K) and int64 labels of shape (B), got float32 of "
                "shape (2,3) and int64 of shape (3)");
  EXPECT_EQ(loss(p, torch::tensor({0, 3})), name + "labels in 0..2, got 3");
  EXPECT_EQ(loss(p, torch::tensor({-1, 2})), name + "labels in 0..2, got -1");
}

TEST(ActivationFactory, MakesEachByName) {
  torch::manual_seed(5);
  EXPECT_EQ(nn::activation_names(),
            (std::vector<std::string>{"qact", "relu", "prelu", "selu", "bn-relu", "ibn-relu"}));
  const torch::Tensor x = torch::randn({6, 3, 4, 4});
  for (const std::string& name : nn::activation_names()) {
    torch::nn::AnyModule activation = nn::make_activation(name, 3);
    EXPECT_EQ(activation.forward(x).sizes(), x.sizes()) << name;
  }
  EXPECT_TRUE(torch::equal(nn::make_activation("relu", 3).forward(x), torch::relu(x)));
  const torch::Tensor normed = nn::make_activation("bn-relu", 3).forward(x);
  EXPECT_TRUE(torch::equal(normed, torch::relu(torch::nn::BatchNorm2d(3)->forward(x))));
  EXPECT_EQ(nn::make_activation("bn-relu", 3).forward(x.select(3, 0).select(2, 0)).dim(), 2);
  // Contexts reach it, and its state is a BatchNorm's.
  torch::nn::AnyModule control = nn::make_activation("bn-relu", 3);
  control.ptr()->eval();
  EXPECT_FALSE(torch::equal(control.forward(x), normed));
  nn::set_context_mode(*control.ptr(), nn::ContextMode::batch);
  EXPECT_TRUE(torch::equal(control.forward(x), normed));
  const torch::nn::BatchNorm2d norm(3);
  EXPECT_EQ(control.ptr()->named_parameters().keys(), norm->named_parameters().keys());
  EXPECT_EQ(control.ptr()->named_buffers().keys(), norm->named_buffers().keys());
  EXPECT_EQ(nn::make_activation("prelu", 3).ptr()->parameters()[0].numel(), 3);
  EXPECT_EQ(
      message_of([] { nn::make_activation("gelu", 3); }),
      "[make_activation] expected one of qact, relu, prelu, selu, bn-relu, ibn-relu, got 'gelu'");
}

}  // namespace
}  // namespace qact::tests
