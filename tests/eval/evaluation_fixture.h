// A small trained run and its test set.
#pragma once

#include "qact/data/dataset.h"
#include "qact/eval/evaluate.h"
#include "tests/train/training_fixture.h"

namespace qact::eval {

inline constexpr int64_t kTestImages = 41;

struct EvaluationFixture : train::TrainingFixture {
  explicit EvaluationFixture(const std::string& activation = "qact",
                             const std::string& model = "mlp") {
    train::write_bands(path / "data", "t10k", kTestImages);
    train::TrainConfig training = config();
    training.activation = activation;
    training.model = model;
    // Equal shares of so few values put quantiles at gaps of the context, where the last unit of a
    // blend by 0 decides.
    training.recalibrate = "off";
    training.epochs = 1;
    training.dither = "on";
    train::train(training, run("run"), /*resume=*/false);
  }

  train::Model model() const { return train::load_model(run("run").model()); }
  data::Split test_images() const {
    return data::open_dataset((path / "data").string(), {}).read({.split = data::SplitName::test});
  }
};

}  // namespace qact::eval
