#include "qact/train/classifiers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/train/fit_classifiers.h"
#include "qact/train/model_file.h"
#include "tests/base/message.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

constexpr int64_t kClasses = 4, kFeatures = 6;

// Each class around a centre of its own; features of very different scales, one of them constant.
LabelledEmbeddings blobs(int64_t count, uint64_t seed) {
  torch::manual_seed(7);
  const torch::Tensor centres = 2 * torch::randn({kClasses, kFeatures});
  const torch::Tensor scales = torch::logspace(-1, 1, kFeatures);
  torch::manual_seed(seed);
  const torch::Tensor labels = torch::randint(kClasses, {count});
  torch::Tensor x = centres.index_select(0, labels) + torch::randn({count, kFeatures});
  x.select(1, 2).fill_(3);
  return {x * scales + 5, labels};
}

double accuracy(const torch::Tensor& p, const torch::Tensor& labels) {
  return p.argmax(1).eq(labels).to(torch::kDouble).mean().item<double>();
}

TEST(Classifiers, ClassifyAndAreTheSameEachTime) {
  const LabelledEmbeddings train = blobs(800, 1), validation = blobs(200, 2), test = blobs(500, 3);
  const Classifiers one = fit_classifiers(train, validation, kClasses);
  const Classifiers two = fit_classifiers(train, validation, kClasses);
  const Classifiers other = fit_classifiers(train, validation, kClasses, {.seed = 1});
  EXPECT_FALSE(torch::equal(one.quantile->linear->weight, other.quantile->linear->weight));
  for (const std::string& name : classifier_names()) {
    const torch::Tensor p = probabilities(one, name, test.embedding);
    EXPECT_EQ(p.sizes(), (std::vector<int64_t>{500, kClasses}));
    EXPECT_GT(p.min().item<double>(), 0) << name;
    EXPECT_LT(p.max().item<double>(), 1 + 1e-6) << name;
    EXPECT_GT(accuracy(p, test.labels), 0.9) << name;
    EXPECT_TRUE(torch::equal(p, probabilities(two, name, test.embedding))) << name;
    EXPECT_FALSE(p.requires_grad());
  }
  const torch::Tensor sums = probabilities(one, "logistic", test.embedding).sum(1);
  EXPECT_TRUE(torch::allclose(sums, torch::ones_like(sums)));
}

// Convex: where the gradient vanishes is the answer. Written out for standardised features.
TEST(Classifiers, LogisticRegressionConverges) {
  const LabelledEmbeddings train = blobs(300, 1);
  const Classifiers found = fit_classifiers(train, blobs(50, 2), kClasses);
  const torch::Tensor raw = train.embedding.to(torch::kDouble);
  torch::Tensor std = raw.std(0, false);
  std = std.clamp_min(1e-3 * std.max().item<double>());
  const torch::Tensor x = (raw - raw.mean(0)) / std;
  const torch::Tensor weight = found.logistic->weight.detach().to(torch::kDouble);
  const torch::Tensor bias = found.logistic->bias.detach().to(torch::kDouble);
  const torch::Tensor error =
      (raw.matmul(weight.t()) + bias).softmax(1) - torch::one_hot(train.labels, kClasses);
  EXPECT_LT(((error.t().matmul(x) + weight * std) / 300).abs().max().item<double>(), 1e-4);
  EXPECT_LT(error.mean(0).abs().max().item<double>(), 1e-4);
}

TEST(Classifiers, RanksInTheBatchWithstandAShiftOfAllEmbeddings) {
  Classifiers found = fit_classifiers(blobs(800, 1), blobs(200, 2), kClasses);
  const LabelledEmbeddings test = blobs(500, 3);
  const torch::Tensor shifted = test.embedding + 20 * torch::logspace(-1, 1, kFeatures);
  const double tracked = accuracy(probabilities(found, "quantile", shifted), test.labels);
  nn::set_context_mode(*found.quantile, nn::ContextMode::batch);
  const double ranked = accuracy(probabilities(found, "quantile", shifted), test.labels);
  EXPECT_LT(tracked, 0.8);
  EXPECT_GT(ranked, tracked + 0.1);
  // The feature that was constant in training is ignored: its weights are not the first random
  // ones, divided by its tiny deviation.
  EXPECT_LT(found.quantile->linear->weight.select(1, 2).abs().max().item<double>(), 0.1);
}

TEST(Classifiers, AreSavedInTheModelsFile) {
  const TrainingFixture scratch;
  const auto network = models::make("mlp", {.classes = 4, .channels = 1, .image_size = 16});
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({40, network->features()});
  const torch::Tensor labels = torch::arange(40) % 4;
  ModelCard card;
  card.model = "mlp";
  card.options = network->options();
  for (const auto prior : {nn::ClassPrior::quantile, nn::ClassPrior::loss}) {
    const Classifiers fitted =
        fit_classifiers({x, labels}, {x, labels}, 4, {.seed = 2, .prior = prior});
    const auto path = scratch.path / "model.safetensors";
    const Classifiers other =
        fit_classifiers({x.square(), labels}, {x, labels}, 4, {.seed = 2, .prior = prior});
    save_model(path, *network, card, {fitted, other});
    const Model loaded = load_model(path);
    for (const std::string& name : classifier_names()) {
      for (const auto mode : {nn::ContextMode::tracked, nn::ContextMode::batch}) {
        const Classifiers& saved = mode == nn::ContextMode::batch ? other : fitted;
        EXPECT_TRUE(torch::equal(probabilities(saved, name, x),
                                 probabilities(loaded.classifiers.for_mode(mode), name, x)));
      }
    }
    safetensors::TensorFile file = safetensors::read_tensors(path);
    safetensors::Tensors half;
    for (const auto& [tensor_name, tensor] : file.tensors) {
      if (tensor_name.starts_with("classifier.tracked.")) half[tensor_name] = tensor;
    }
    expect_in(
        "expected classifiers for running contexts and for the batch's own, got the former alone",
        message_of([&] { extract_classifiers(&half, path); }));
    file.tensors["classifier.batch.logistic.bias"] = torch::zeros({3});
    expect_in(
        "'classifier.batch.logistic.bias': expected float32 of shape (4), got float32 of shape (3)",
        message_of([&] { extract_classifiers(&file.tensors, path); }));
  }
  save_model(scratch.path / "plain", *network, card);
  EXPECT_TRUE(load_model(scratch.path / "plain").classifiers.empty());
}

TEST(Classifiers, StopWhenToldAndRefuse) {
  const LabelledEmbeddings train = blobs(100, 1);
  for (int most : {0, 3}) {
    const Classifiers left =
        fit_classifiers(train, train, kClasses, {}, [&] { return --most >= 0; });
    EXPECT_TRUE(left.empty());
  }
  expect_in("[classifiers] expected fitted classifiers, got none",
            message_of([&] { probabilities({}, "quantile", train.embedding); }));
  expect_in("[classifiers] expected labels in 0..1, got 3",
            message_of([&] { fit_classifiers(train, train, 2); }));
  expect_in("[classifiers] expected embeddings (N,6) and int64 labels (N), N at least 1, got",
            message_of([&] { fit_classifiers(train, {torch::ones({2, 5}), train.labels}, 4); }));
}

TEST(Classifiers, AreFittedAtTheEndOfARun) {
  const TrainingFixture scratch;
  for (const double validation : {0.2, 0.0}) {
    TrainConfig config = scratch.config();
    config.fit_classifiers = "auto";
    config.validation = validation;
    const std::string name = validation > 0 ? "" : " of all";
    const RunFolder whole = scratch.run("whole" + name), stopped = scratch.run("stopped" + name);
    train(config, whole, false);
    const Model model = load_model(whole.model());
    ASSERT_FALSE(model.classifiers.empty());
    EXPECT_EQ(load_model(whole.best().parent_path() / whole.model().filename()).card.epoch, 3);

    // Stopped while fitting: all is fitted again, to the same bits.
    int calls = 3 * 6 + 5;
    ASSERT_TRUE(train(config, stopped, false, stop_after(&calls)).interrupted);
    EXPECT_TRUE(load_model(stopped.model()).classifiers.empty());
    ASSERT_FALSE(train(config, stopped, true).interrupted);
    EXPECT_TRUE(contents(whole.model()) == contents(stopped.model()));
    if (validation > 0) {
      EXPECT_FALSE(load_model(whole.best()).classifiers.empty());
    }
  }
}

}  // namespace
}  // namespace qact::train
