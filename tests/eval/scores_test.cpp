// What rows of scores are made of, and what is made of them.
#include "qact/eval/scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "qact/eval/summary.h"
#include "tests/results/example_rows.h"

namespace qact::eval {
namespace {

using results::Rows;

TEST(Bootstrap, HoldsTheBinomialsMiddle) {
  // 400 samples, 300 right: deviation sqrt(.75 * .25 / 400) = 0.0217.
  std::vector<float> probabilities;
  std::vector<int64_t> labels(400, 1);
  for (int i = 0; i < 400; ++i) {
    probabilities.push_back(i < 300 ? 0 : 1);
    probabilities.push_back(i < 300 ? 1 : 0);
  }
  const Interval interval = bootstrap_accuracy({probabilities, labels, 2});
  EXPECT_NEAR(interval.low, 0.75 - 1.96 * 0.0217, 0.01);
  EXPECT_NEAR(interval.high, 0.75 + 1.96 * 0.0217, 0.01);
}

// Every sample that can be drawn from five, 5^5 of them.
TEST(Bootstrap, IsThatOfAllSamples) {
  const std::vector<int64_t> labels(5, 1);
  for (int right = 0; right <= 5; ++right) {
    std::vector<float> probabilities;
    for (int i = 0; i < 5; ++i) {
      probabilities.insert(probabilities.end(), {i < right ? 0.f : 1.f, i < right ? 1.f : 0.f});
    }
    std::vector<int> sums;
    for (int sample = 0; sample < 3125; ++sample) {
      int sum = 0;
      for (int rest = sample, draw = 0; draw < 5; ++draw, rest /= 5) sum += rest % 5 < right;
      sums.push_back(sum);
    }
    std::sort(sums.begin(), sums.end());
    const Interval interval = bootstrap_accuracy({probabilities, labels, 2});
    EXPECT_EQ(interval.low, sums[3125 / 40] / 5.0) << right;
    EXPECT_EQ(interval.high, sums[3125 - 1 - 3125 / 40] / 5.0) << right;
  }
}

TEST(Summary, AveragesOverCorruptions) {
  Rows rows;
  const auto add = [&](const char* corruption, int severity, double accuracy) {
    rows.push_back(results::score_row(results::example_evaluation(corruption, severity), accuracy));
  };
  add("none", 0, 0.9);
  add("fog", 1, 0.8), add("fog", 5, 0.4);
  add("snow", 1, 0.6), add("snow", 5, 0.2);
  const std::vector<EvaluateSummary> found = summarise(rows);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found[0].accuracy.at(1), 0.7);
  EXPECT_DOUBLE_EQ(found[0].drop(0, 5), 0.6);
  EXPECT_DOUBLE_EQ(found[0].corruption_error, 0.5);
  EXPECT_DOUBLE_EQ(found[0].relative_corruption_error, 0.4);
  EXPECT_TRUE(std::isnan(found[0].drop(0, 4)));
  EXPECT_TRUE(std::isnan(found[0].map100.at(0)));

  add("tone", 5, 0.9);
  EXPECT_DOUBLE_EQ(summarise(rows)[0].drop(0, 5), 0.6);
  rows = {};
  add("none", 0, 0.9), add("tone", 5, 0.7);
  EXPECT_NEAR(summarise(rows)[0].drop(0, 5), 0.2, 1e-12);
}

}  // namespace
}  // namespace qact::eval
