// A small trained run with a test set of its own.
#pragma once

#include "qact/data/dataset.h"
#include "qact/run/evaluate.h"
#include "tests/run/train_folder.h"

namespace qact::run {

inline constexpr int64_t kTestImages = 41;

struct EvaluateFolder : TrainFolder {
  explicit EvaluateFolder(const std::string& activation = "qact") {
    write_bands(path / "data", "t10k", kTestImages);
    TrainConfig training = config();
    training.activation = activation;
    training.epochs = 1;
    train(training, run("run"), /*resume=*/false);
  }

  Model model() const { return load_model(run("run").model()); }
  data::Split test_images() const {
    return data::open_dataset((path / "data").string(), {}).read({.part = data::Part::kTest});
  }
};

}  // namespace qact::run
