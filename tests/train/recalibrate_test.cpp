#include "qact/train/recalibrate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/data/dataset.h"
#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"
#include "qact/train/model_file.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

struct Recalibration : TrainingFixture {
  TrainConfig lenet(const std::string& activation) const {
    TrainConfig c = config();
    c.model = "lenet";
    c.activation = activation;
    c.lr = 0.05;
    return c;
  }
};

bool go_on() { return true; }

// The first layer's statistics one batch after another: the mean of the batches' means and of their
// unbiased variances, over images cropped as in training.
TEST(Recalibrate, IsTheMeanOverTheBatches) {
  const Recalibration scratch;
  TrainConfig config = resolved(scratch.lenet("relu"));
  config.augment = "crop";
  train(config, scratch.run("run"), false);
  TrainingData data(config, false);
  for (const auto& path : {scratch.run("run").model(), scratch.run("run").best()}) {
    const Model model = load_model(path);
    EXPECT_TRUE(model.card.recalibrated);
    const auto parameters = model.network->named_parameters();
    torch::Tensor mean = torch::zeros({32}), var = torch::zeros({32});
    double batches = 0;
    PrefetchingLoader& loader = data.lone_training_loader();
    while (const std::optional<Batch> batch = loader.next()) {
      const torch::Tensor y =
          torch::conv2d(batch->images, parameters["conv1.weight"], parameters["conv1.bias"]);
      mean += y.mean({0, 2, 3}).detach();
      var += y.transpose(0, 1).flatten(1).var(1, /*unbiased=*/true).detach();
      batches += 1;
    }
    EXPECT_EQ(batches, 4);
    const auto buffers = model.network->named_buffers();
    EXPECT_LT((buffers["bn1.running_mean"] - mean / batches).abs().max().item<double>(), 1e-5);
    EXPECT_LT((buffers["bn1.running_var"] - var / batches).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(buffers["bn1.num_batches_tracked"].item<int64_t>(), 4);
  }
}

// Of every batch alike, so that a context which one batch shapes shows in it by its share.
TEST(Recalibrate, ForgetsTheContextsOfTraining) {
  const Recalibration scratch;
  TrainConfig config = scratch.lenet("qact");
  train(config, scratch.run("on"), false);
  config.recalibrate = "off";
  train(config, scratch.run("off"), false);
  const Model on = load_model(scratch.run("on").model()),
              off = load_model(scratch.run("off").model());
  EXPECT_FALSE(off.card.recalibrated);
  for (const auto& item : off.network->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), on.network->named_parameters()[item.key()]));
  }
  TrainingData data(resolved(config), false);
  const auto same_context = [](const models::Network& a, const models::Network& b) {
    return torch::equal(a.named_buffers()["activation1.context"],
                        b.named_buffers()["activation1.context"]);
  };
  EXPECT_FALSE(same_context(*on.network, *off.network));
  EXPECT_TRUE(recalibrate(*off.network, data.lone_training_loader(), go_on));
  EXPECT_TRUE(same_context(*on.network, *off.network));
}

// The validation in the running statistics of a run that has hardly begun.
TEST(Recalibrate, MakesRunningStatisticsWorkAfterFewSteps) {
  const Recalibration scratch;
  for (const char* activation : {"relu", "qact", "ibn-relu"}) {
    TrainConfig config = scratch.lenet(activation);
    config.epochs = 2;
    const auto accuracy = [&](const char* on) {
      config.recalibrate = on;
      const RunFolder run = scratch.run(std::string(activation) + on);
      train(config, run, false);
      const Model model = load_model(run.model());
      model.network->eval();
      const torch::NoGradGuard no_grad;
      TrainingData data(resolved(config), false);
      double correct = 0;
      PrefetchingLoader& loader = data.evaluation_loader(TrainingData::Subset::validation);
      while (const std::optional<Batch> batch = loader.next()) {
        correct += model.network->forward(batch->images)
                       .logits.argmax(1)
                       .eq(batch->labels)
                       .sum()
                       .item<double>();
      }
      return correct / static_cast<double>(data.validation_images());
    };
    const double with = accuracy("on"), without = accuracy("off");
    EXPECT_GE(with, without) << activation;
    EXPECT_GE(with, 0.9) << activation;
  }
}

}  // namespace
}  // namespace qact::train
