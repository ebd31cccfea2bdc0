// Metrics of probabilities against scikit-learn, torchmetrics and the verified-calibration library,
// whose values scripts/metrics_fixtures.py stored, and edge cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "qact/metrics/calibration.h"
#include "qact/metrics/scores.h"

namespace qact::metrics {
namespace {

const nlohmann::json& fixtures() {
  static const auto json =
      nlohmann::json::parse(std::ifstream(QACT_TEST_FIXTURES "/metrics/scores.json"));
  return json;
}

struct Table {
  std::vector<float> probabilities;
  std::vector<int64_t> labels;
  int64_t classes;

  Predictions view() const { return {probabilities, labels, classes}; }
};

TEST(Metrics, AgreeWithEstablishedLibraries) {
  for (const auto& c : fixtures()["cases"]) {
    const Table t{c["probabilities"], c["labels"], c["classes"]};
    SCOPED_TRACE(c["name"].get<std::string>());
    EXPECT_NEAR(accuracy(t.view()), c["accuracy"], 1e-12);
    EXPECT_NEAR(negative_log_likelihood(t.view()), c["nll"], 1e-6);
    EXPECT_NEAR(brier(t.view()), c["brier"], 1e-6);
    EXPECT_NEAR(ece(t.view()), c["ece"], 1e-5);
    EXPECT_NEAR(calibration_error_marginal(t.view(), Binning::as_library), c["marginal_library"],
                1e-6);
    EXPECT_NEAR(calibration_error_top(t.view(), Binning::as_library), c["top_library"], 1e-6);
  }
}

TEST(Metrics, TheLibrarySwitchesBinsForDiscreteOutputsAndWeDoNot) {
  const auto& c = fixtures()["cases"][1];
  const Table t{c["probabilities"], c["labels"], c["classes"]};
  EXPECT_EQ(calibration_error_marginal(t.view(), Binning::per_value),
            calibration_error_marginal(t.view(), Binning::as_library));
  EXPECT_NE(calibration_error_marginal(t.view()),
            calibration_error_marginal(t.view(), Binning::as_library));
}

TEST(Metrics, CertainAndRightIsPerfect) {
  const Table t{{1, 0, 0, 1, 1, 0}, {0, 1, 0}, 2};
  EXPECT_EQ(accuracy(t.view()), 1);
  EXPECT_EQ(negative_log_likelihood(t.view()), 0);
  EXPECT_EQ(brier(t.view()), 0);
  EXPECT_EQ(ece(t.view()), 0);
  EXPECT_EQ(calibration_error_top(t.view()), 0);
  EXPECT_EQ(calibration_error_marginal(t.view()), 0);
}

TEST(Metrics, CertainAndWrongIsFiniteAndWorst) {
  const Table t{{1, 0, 1, 0}, {1, 1}, 2};
  EXPECT_EQ(accuracy(t.view()), 0);
  EXPECT_TRUE(std::isfinite(negative_log_likelihood(t.view())));
  EXPECT_EQ(brier(t.view()), 2);
  EXPECT_EQ(ece(t.view()), 1);
}

TEST(Metrics, TiesGoToTheFirstClassAndZerosCountAsUniform) {
  const Table t{{0.5, 0.5, 0, 0}, {0, 1}, 2};
  EXPECT_EQ(accuracy(t.view()), 0.5);
  EXPECT_NEAR(negative_log_likelihood(t.view()), std::log(2.0), 1e-12);
}

TEST(Metrics, NoSamples) {
  const Table t{{}, {}, 3};
  EXPECT_TRUE(std::isnan(accuracy(t.view())));
  EXPECT_TRUE(std::isnan(brier(t.view())));
  EXPECT_EQ(ece(t.view()), 0);
  EXPECT_EQ(calibration_error_marginal(t.view()), 0);
}

TEST(Metrics, BadInputIsNamed) {
  const auto message = [](const Table& t) -> std::string {
    try {
      accuracy(t.view());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({{0.5, 0.5}, {2}, 2}), "[accuracy] expected labels in 0..1, got 2 at 0");
  EXPECT_EQ(message({{0.5}, {0}, 2}),
            "[accuracy] expected 2 probabilities for 1 labels and 2 classes, got 1");
  EXPECT_EQ(message({{1.5, 0}, {0}, 2}),
            "[accuracy] expected probabilities in [0, 1], got 1.5 for class 0 at 0");
}

TEST(Metrics, ReliabilityBinsCoverEverySample) {
  const Table t{{0, 1, 0.5, 0.5, 0.3, 0.7}, {1, 0, 0}, 2};
  int64_t count = 0;
  for (const ReliabilityBin& bin : reliability(t.view(), 10)) count += bin.count;
  EXPECT_EQ(count, 3);
  EXPECT_EQ(reliability(t.view(), 10).back().accuracy, 1);
}

// Every class's probability counts: 1 and 0.9 in the last bin, one of them right.
TEST(Metrics, MarginalReliabilityPoolsTheClasses) {
  const Table t{{0, 1, 0.9, 0.1}, {1, 1}, 2};
  const auto bins = reliability_marginal(t.view(), 5);
  EXPECT_EQ(bins.front().count, 2);
  EXPECT_EQ(bins.back().count, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(bins.back().confidence), 0.95f);
  EXPECT_EQ(bins.back().accuracy, 0.5);
  EXPECT_EQ(bins[2].count, 0);
}

}  // namespace
}  // namespace qact::metrics
