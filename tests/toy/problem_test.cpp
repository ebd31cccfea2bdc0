#include "qact/toy/problem.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace qact::toy {
namespace {

TEST(Circle, IsTwoClassesThirtyDegreesApart) {
  base::Random random(1, 0);
  const ToyBatch batch = circle_batch(0.7, 20000, random);
  for (int label = 0; label < 2; ++label) {
    const at::Tensor points = batch.x.index({batch.y == label});
    ASSERT_EQ(points.size(0), 10000);
    const double angle = 0.7 + label * M_PI / 6;
    EXPECT_NEAR(points.select(1, 0).mean().item<double>(), std::cos(angle), 0.005);
    EXPECT_NEAR(points.select(1, 1).mean().item<double>(), std::sin(angle), 0.005);
    EXPECT_NEAR(points.std(0).max().item<double>(), 0.1, 0.003);
    EXPECT_NEAR(points.std(0).min().item<double>(), 0.1, 0.003);
  }
}

TEST(Circle, BayesAccuracyIsWhatTheBestLineReaches) {
  EXPECT_NEAR(toy_problem("circle").bayes, 0.9952, 5e-5);
  base::Random random(2, 0);
  const double angle = 1.9, middle = angle + M_PI / 12;
  const ToyBatch batch = circle_batch(angle, 40000, random);
  // The side of the line through the origin at the angle halfway between the means.
  const at::Tensor side =
      batch.x.select(1, 1) * std::cos(middle) - batch.x.select(1, 0) * std::sin(middle);
  const double accuracy = (side > 0).eq(batch.y).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(accuracy, toy_problem("circle").bayes, 0.0015);
}

TEST(Monotone, LabelsFollowFromRanksAlone) {
  base::Random random(3, 0);
  const ToyBatch batch = toy_problem("monotone").draw(64, random);
  const at::Tensor ranks = batch.x.argsort(int64_t{0}).argsort(int64_t{0});
  const at::Tensor balance = ranks.slice(1, 0, 4).sum(1) - ranks.slice(1, 4, 8).sum(1);
  EXPECT_TRUE((balance > 0).eq(batch.y).all().item<bool>());
  EXPECT_NEAR(batch.y.to(at::kDouble).mean().item<double>(), 0.5, 0.2);
}

TEST(IncreasingMap, Increases) {
  base::Random random(4, 0);
  for (int repeat = 0; repeat < 100; ++repeat) {
    const IncreasingMap map(random);
    EXPECT_EQ(map(0), 0);
    double before = -1;
    for (int k = 0; k <= 1000; ++k) {
      ASSERT_GT(map(k / 1000.0), before);
      before = map(k / 1000.0);
    }
  }
}

TEST(ToyProblem, IsKnownByName) {
  EXPECT_EQ(toy_problem("monotone").features, 8);
  EXPECT_THROW(toy_problem("both"), std::invalid_argument);
}

}  // namespace
}  // namespace qact::toy
