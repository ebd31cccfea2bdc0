// Classes are matched by name from the training folder to predictions and to other datasets.
#include <gtest/gtest.h>

#include "qact/eval/evaluate.h"
#include "qact/eval/predict.h"
#include "tests/base/message.h"
#include "tests/image/image_folder.h"
#include "tests/train/training_fixture.h"

namespace qact::eval {
namespace {

namespace fs = std::filesystem;

struct Animals : train::TrainingFixture {
  Animals() {
    write("animals", {"cat", "cow", "dog"});
    train::TrainConfig training = config();
    training.data = (path / "animals").string();
    training.validation = 0;
    training.epochs = 8;
    train::train(training, run("run"), /*resume=*/false);
  }
  void write(const std::string& name, const std::vector<std::string>& classes) const {
    write_images(path / name / "train", classes, 12);
    write_images(path / name / "test", classes, 6);
  }
  EvaluateResult evaluated(const std::string& name) const {
    EvaluateOptions options;
    options.modes = {"tracked"};
    options.severities = {0};
    options.data = (path / name).string();
    options.threads = 1;
    return evaluate(run("run"), options);
  }
};

double accuracy(const EvaluateResult& result) {
  for (const results::Row& row : result.rows) {
    if (row["kind"] == "scores") return row["accuracy"].get<double>();
  }
  return -1;
}

TEST(ClassNames, MatchTheClassesOfOtherDatasets) {
  const Animals scratch;
  const EvaluateResult own = scratch.evaluated("animals");
  ASSERT_EQ(accuracy(own), 1);
  EXPECT_EQ(own.remark, "");

  scratch.write("two", {"cow", "dog"});
  const EvaluateResult two = scratch.evaluated("two");
  EXPECT_EQ(accuracy(two), 1);
  EXPECT_EQ(two.remark, (scratch.path / "two").string() +
                            " has no test images of 1 of the 3 classes of the model: cat");

  scratch.write("renamed", {"cat", "cow", "aardvark"});
  EXPECT_EQ(message_of([&] { scratch.evaluated("renamed"); }),
            "[eval] expected images of the model's classes (cat, cow, dog), got aardvark in " +
                (scratch.path / "renamed").string());

  // Digits have no names: classes are matched by number, and two more are too many.
  expect_in("expected the 3 classes of the model, by number since they have no names, got 5",
            message_of([&] {
              train::write_bands(scratch.path / "five", "train", 6);
              train::write_bands(scratch.path / "five", "t10k", 6);
              std::fstream labels(scratch.path / "five" / "train-labels-idx1-ubyte",
                                  std::ios::in | std::ios::out | std::ios::binary);
              labels.seekp(8);
              labels.put(4);
              labels.close();
              scratch.evaluated("five");
            }));
}

TEST(ClassNames, AreThoseOfPredictions) {
  const Animals scratch;
  const train::Model model = train::load_model(scratch.run("run").model());
  const auto images = list_images({(scratch.path / "animals" / "test").string()});
  ASSERT_EQ(images.size(), 18u);
  for (const Prediction& each : predict(model, images, {}).predictions) {
    EXPECT_EQ(each.top[0].name, each.image.parent_path().filename()) << each.image;
    EXPECT_EQ(each.top[0].name, model.card.class_names.at(each.top[0].label));
  }
}

}  // namespace
}  // namespace qact::eval
