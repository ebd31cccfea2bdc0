#include "qact/results/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/results/example_rows.h"

namespace qact::results {
namespace {

Row row_of(const std::string& corruption, int severity, double accuracy, uint64_t seed = 0,
           int64_t limit = 0) {
  Evaluation e = example_evaluation(corruption, severity);
  e.seed = seed;
  e.model_hash += std::to_string(seed);
  e.setting.limit = limit;
  e.n = limit > 0 ? limit : 1000;
  return score_row(e, accuracy);
}

Curve one_curve(const Rows& rows) {
  const auto all = curves(scores(rows));
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

TEST(Mean, SkipsWhatIsNotFinite) {
  const double nan = std::nan("");
  const std::vector<double> values = {1, nan, 3};
  const Mean mean = mean_of(values);
  EXPECT_EQ(mean.mean, 2);
  EXPECT_EQ(mean.deviation, std::sqrt(2));
  EXPECT_EQ(mean.count, 2);
  EXPECT_TRUE(std::isnan(mean_of({}).mean));
  EXPECT_EQ(mean_of(std::vector<double>{5}).deviation, 0);
}

// Far from zero, where sums of squares lose all digits.
TEST(Mean, DeviationIsThatOfThePlainFormula) {
  const std::vector<double> values = {1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_EQ(mean_of(values).deviation, 1);
}

TEST(Curve, AveragesOverCorruptionsThenOverSeeds) {
  const Curve curve =
      one_curve({row_of("none", 0, 0.9), row_of("fog", 1, 0.8), row_of("snow", 1, 0.6),
                 row_of("none", 0, 0.7, 1), row_of("fog", 1, 0.5, 1), row_of("snow", 1, 0.1, 1),
                 row_of("tone", 1, 0.0, 1), row_of("gamma4", 1, 0.0, 1)});
  const std::vector<std::string> both = {"fog", "snow"};
  EXPECT_EQ(curve.corruptions(), both);
  EXPECT_NEAR(curve.mean("accuracy", 1, both), (0.7 + 0.3) / 2, 1e-12);
  EXPECT_NEAR(curve.over_seeds("accuracy", 1, both).deviation, 0.4 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(curve.mean("drop", 1, both), (0.2 + 0.4) / 2, 1e-12);
  EXPECT_NEAR(curve.drop("accuracy", 0, 1, both).mean, 0.3, 1e-12);
  EXPECT_NEAR(curve.corruption_error({0, 1}, both), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(curve.corruption_error({1, 2}, both)));
  EXPECT_TRUE(std::isnan(curve.corruption_error({0}, both)));
  EXPECT_EQ(curve.mean("accuracy", 1, {kTone}), 0);
}

// A seed that has one of two corruptions has no mean over both.
TEST(Curve, AnIncompleteSeedIsNotAveraged) {
  const Curve curve =
      one_curve({row_of("none", 0, 0.9), row_of("fog", 1, 0.8), row_of("snow", 1, 0.6),
                 row_of("none", 0, 0.7, 1), row_of("fog", 1, 0.1, 1)});
  EXPECT_NEAR(curve.mean("accuracy", 1, {"fog", "snow"}), 0.7, 1e-12);
  EXPECT_NEAR(curve.mean("drop", 1, {"fog", "snow"}), 0.2, 1e-12);
  EXPECT_NEAR(curve.mean("accuracy", 1, {"fog"}), 0.45, 1e-12);
  EXPECT_TRUE(std::isnan(curve.mean("accuracy", 2, {"fog"})));
}

TEST(MostComplete, APartialEvaluationIsLeftOut) {
  Rows rows = {row_of("none", 0, 0.9), row_of("fog", 1, 0.8)};
  rows.push_back(row_of("none", 0, 1.0, 0, 20));
  rows.push_back(row_of("fog", 1, 1.0, 0, 20));
  for (int order = 0; order < 2; ++order, std::reverse(rows.begin(), rows.end())) {
    std::vector<LeftOut> left_out;
    const auto kept = most_complete(curves(scores(rows)), left_out);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].setting.limit, 0);
    EXPECT_EQ(kept[0].mean("accuracy", 1, {"fog"}), 0.8);
    ASSERT_EQ(left_out.size(), 1u);
    EXPECT_EQ(left_out[0].curve.setting.limit, 20);
    EXPECT_EQ(left_out[0].kept.limit, 0);
  }
}

// All images once are fewer than 500 of them five times.
TEST(MostComplete, IsTheOneWithMostImages) {
  Rows rows = {row_of("none", 0, 0.9)};
  for (int severity = 1; severity <= 5; ++severity) {
    rows.push_back(row_of("fog", severity, 0.5, 0, 500));
  }
  std::vector<LeftOut> left_out;
  const auto kept = most_complete(curves(scores(rows)), left_out);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].setting.limit, 500);
}

// Curves of other frost textures do not replace one another; one without frost may be replaced by
// any.
TEST(MostComplete, IsLeftOutForACurveThatIsKept) {
  const auto frosty = [](const char* frost, int64_t limit) {
    Evaluation e = example_evaluation("frost", 1);
    e.setting.frost = frost;
    e.setting.limit = limit;
    e.n = limit > 0 ? limit : 1000;
    return score_row(e, 0.5);
  };
  const Rows rows = {frosty("procedural", 20), row_of("fog", 1, 0.5, 0, 500),
                     frosty("official", 0)};
  std::vector<LeftOut> left_out;
  const auto kept = most_complete(curves(scores(rows)), left_out);
  ASSERT_EQ(kept.size(), 2u);
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].kept, kept[1].setting);
}

TEST(MostComplete, OtherNetworksAreKept) {
  Evaluation other = example_evaluation("fog", 1);
  other.setting.limit = 20;
  other.setting.activation = "relu";
  std::vector<LeftOut> left_out;
  EXPECT_EQ(most_complete(curves(scores({row_of("fog", 1, 0.8), score_row(other, 0.5)})), left_out)
                .size(),
            2u);
  EXPECT_TRUE(left_out.empty());
}

struct Coverage {
  std::vector<std::string> corruptions;
  std::vector<int> severities;
};

CommonCorruptions common_of(const std::vector<Coverage>& coverage) {
  std::vector<Curve> all;
  for (const Coverage& curve : coverage) {
    Rows rows;
    for (const std::string& name : curve.corruptions) {
      for (const int severity : curve.severities) rows.push_back(row_of(name, severity, 0.5));
    }
    all.push_back(rows.empty() ? Curve{} : one_curve(rows));
  }
  std::vector<const Curve*> pointers;
  for (const Curve& curve : all) pointers.push_back(&curve);
  return common_corruptions(pointers);
}

TEST(CommonCorruptions, AreThoseThatAllHave) {
  const CommonCorruptions common =
      common_of({{{"fog", "snow", "frost"}, {1, 2}}, {{"snow", "fog"}, {1, 2}}});
  EXPECT_EQ(common.names, (std::vector<std::string>{"fog", "snow"}));
  EXPECT_TRUE(common.incomplete.empty());
}

TEST(CommonCorruptions, AnIncompleteEvaluationDoesNotReduceThem) {
  const Coverage whole = {{"fog", "snow", "frost", "blur"}, {1, 2, 3, 4, 5}};
  const CommonCorruptions common = common_of({whole, whole, {{"fog"}, {1, 2, 3, 4, 5}}});
  EXPECT_EQ(common.names, whole.corruptions);
  ASSERT_EQ(common.incomplete.size(), 1u);
  EXPECT_EQ(common.incomplete[0].curve, 2u);
  EXPECT_EQ(common.incomplete[0].count, 1u);
}

TEST(CommonCorruptions, AnIncompleteCorruptionIsNotCommon) {
  const Curve curve =
      one_curve({row_of("fog", 1, 0.5), row_of("fog", 2, 0.5), row_of("snow", 1, 0.5)});
  const Curve* const pointers[] = {&curve};
  EXPECT_EQ(common_corruptions(pointers).names, (std::vector<std::string>{"fog"}));
}

TEST(CommonCorruptions, FewerSeveritiesDoNotReduceThem) {
  const Coverage whole = {{"fog", "snow"}, {1, 2, 3, 4, 5}};
  const CommonCorruptions common = common_of({whole, {{"fog", "snow"}, {5}}, {{kTone}, {5}}});
  EXPECT_EQ(common.names, whole.corruptions);
  EXPECT_EQ(common.incomplete.size(), 1u);
  EXPECT_TRUE(common_of({{{kTone}, {1}}}).names.empty());
  EXPECT_TRUE(common_of({}).names.empty());
}

}  // namespace
}  // namespace qact::results
