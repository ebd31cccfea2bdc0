#include "qact/eval/row_maker.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/eval/quick_evaluation.h"

namespace qact::eval {
namespace {

TEST(TrainingOf, HasAllThatCanChangeWhatIsLearnt) {
  // Of the model card, or fields of their own.
  const std::set<std::string> elsewhere = {"model", "activation", "placement",
                                           "loss",  "seed",       "dither"};
  const std::set<std::string> without_effect = {"data-dir",        "workers",
                                                "save-every",      "cuda-graph",
                                                "fit-classifiers", "checkpoint-activations"};
  const train::ModelCard card;
  const train::TrainConfig before;
  train::TrainConfig config;
  std::set<std::string> absent;
  visit_fields(config, [&](const char* name, auto& field, const char*) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>) {
      field += "other";
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = !field;
    } else if constexpr (std::is_arithmetic_v<Field>) {
      field += 1;
    } else {
      field.push_back(7);
    }
    if (training_of(config, card, "best") == training_of(before, card, "best")) absent.insert(name);
    config = train::TrainConfig();
  });
  std::set<std::string> expected = elsewhere;
  expected.insert(without_effect.begin(), without_effect.end());
  EXPECT_EQ(absent, expected);

  for (const results::Row& row : results::parse_rows(expected_results(), "whole")) {
    if (row["kind"] == "config") continue;
    EXPECT_EQ(row["training"]["epochs"], 1);
    EXPECT_EQ(row["training"]["trained-epochs"], 1);
    EXPECT_EQ(row["training"]["early-stages"], before.early_stages);
  }
}

TEST(TrainingOf, IsTheSameForAllGpus) {
  const train::ModelCard card;
  train::TrainConfig one, other;
  one.device = "cuda:0", other.device = "cuda:1";
  one.threads = 2, other.threads = 16;
  EXPECT_EQ(training_of(one, card, "best"), training_of(other, card, "best"));
}

// As of a folder that was added to, or another one of the same name.
TEST(TrainingOf, DependsOnTheTrainingImages) {
  const train::TrainConfig config;
  train::ModelCard one, other;
  one.data_hash = "1", other.data_hash = "2";
  EXPECT_NE(training_of(config, one, "best"), training_of(config, other, "best"));
  other = one;
  other.dither = true;  // what auto stands for
  EXPECT_NE(training_of(config, one, "best"), training_of(config, other, "best"));
}

// A run that is not finished differs from the finished one. Where the run chooses the epoch itself,
// the epoch is a result.
TEST(TrainingOf, DependsOnTheEpochOfTheLastWeights) {
  train::TrainConfig config;
  train::ModelCard early, late;
  early.epoch = 3, late.epoch = 20;
  EXPECT_NE(training_of(config, early, "model"), training_of(config, late, "model"));
  EXPECT_EQ(training_of(config, early, "best"), training_of(config, late, "best"));
  config.early_stopping = 0.1;
  EXPECT_EQ(training_of(config, early, "model"), training_of(config, late, "model"));
}

}  // namespace
}  // namespace qact::eval
