#include "qact/results/toy.h"

#include <gtest/gtest.h>

namespace qact::results {
namespace {

ToyScore example_score(const std::string& network, int64_t seed, std::vector<int64_t> correct) {
  return {.experiment = "circle",
          .network = network,
          .label = network + " label",
          .seed = seed,
          .steps = 3,
          .width = 4,
          .batch_size = 10,
          .learning_rate = 0.003,
          .bayes = 0.9952,
          .loss = 0.7,
          .correct = std::move(correct)};
}

TEST(ToyScore, RoundTripsThroughARow) {
  const ToyScore score = example_score("qact", 2, {9, 10, 5, 8});
  const Row row = to_row(score);
  EXPECT_EQ(row["kind"], "toy_score");
  EXPECT_DOUBLE_EQ(row["accuracy"], 0.8);
  EXPECT_DOUBLE_EQ(row["worst"], 0.5);
  const ToyScore back = toy_score(Row::parse(row.dump()));
  EXPECT_EQ(to_row(back), row);
  EXPECT_EQ(back.correct, score.correct);
}

TEST(ToyScore, RefusesARowThatLacksSomething) {
  Row row = to_row(example_score("qact", 0, {1}));
  row["correct"] = Row::array();
  EXPECT_THROW(toy_score(row), std::exception);
  row.erase("correct");
  EXPECT_THROW(toy_score(row), std::exception);
}

TEST(ToySummary, IsOverSeedsInOrderOfAppearance) {
  const Rows rows = {to_row(example_score("relu", 0, {5, 5})),
                     to_row(example_score("qact", 0, {10, 8})),
                     {{"kind", "other"}},
                     to_row(example_score("qact", 1, {7, 9}))};
  const auto summaries = summarise_toy(toy_scores(rows, "circle"));
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].network, "relu");
  EXPECT_EQ(summaries[0].seeds, 1);
  EXPECT_EQ(summaries[0].deviation, 0);
  EXPECT_EQ(summaries[1].label, "qact label");
  EXPECT_EQ(summaries[1].contexts, 4);
  EXPECT_DOUBLE_EQ(summaries[1].mean, 0.85);
  EXPECT_NEAR(summaries[1].deviation, 0.0707106781, 1e-9);
  EXPECT_DOUBLE_EQ(summaries[1].worst, 0.7);
  EXPECT_TRUE(toy_scores(rows, "monotone").empty());
}

// Seeds are averaged only where all else is equal, and each counts once.
TEST(ToySummary, WhatDiffersIsToldApart) {
  const ToyScore score = example_score("qact", 0, {10, 8});
  ToyScore longer = example_score("qact", 1, {7, 9});
  longer.steps = 30;
  const auto summaries = summarise_toy({score, longer, score});
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].label, "qact label, steps 3");
  EXPECT_EQ(summaries[1].label, "qact label, steps 30");
  EXPECT_EQ(summaries[0].seeds, 1);
  EXPECT_DOUBLE_EQ(summaries[0].mean, 0.9);
  EXPECT_THROW(summarise_toy({score, example_score("qact", 0, {10, 9})}), std::runtime_error);
}

}  // namespace
}  // namespace qact::results
