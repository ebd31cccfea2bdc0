#include "qact/results/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qact::results {
namespace {

Row score_row(double accuracy) {
  return {{"kind", "scores"}, {"dataset", "digits"}, {"model", "lenet"},     {"activation", "qact"},
          {"mode", "batch"},  {"distortion", "fog"}, {"severity", 3},        {"seed", 1},
          {"n", 100},         {"prior", nullptr},    {"accuracy", accuracy}, {"map100", nullptr}};
}

TEST(Evaluation, ReadsScoresAndSkipsOtherKinds) {
  const auto all = scores({{{"kind", "tsne"}}, score_row(0.5)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].setting.activation, "qact");
  EXPECT_EQ(all[0].severity, 3);
  EXPECT_EQ(all[0].value("accuracy"), 0.5);
  EXPECT_TRUE(std::isnan(all[0].value("map100")));
  EXPECT_TRUE(std::isnan(all[0].value("ece_top")));
}

TEST(Evaluation, ALaterScoreOfTheSameReplacesTheEarlier) {
  Row other = score_row(0.7);
  other["severity"] = 4;
  const auto all = scores({score_row(0.5), other, score_row(0.6)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].value("accuracy"), 0.6);
}

TEST(Evaluation, NamesARowThatIsNotWhole) {
  for (const char* key : {"distortion", "severity", "seed", "n", "accuracy"}) {
    Row row = score_row(0.5);
    row.erase(key);
    EXPECT_THROW(scores({row}), std::runtime_error) << key;
  }
}

}  // namespace
}  // namespace qact::results
