#include "qact/corrupt/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace qact::corrupt {
namespace {

TEST(Draw, DependsOnAllOfItsFourNumbers) {
  std::set<uint64_t> first;
  for (const uint64_t seed : {0, 1}) {
    for (const char* name : {"fog", "snow"}) {
      for (const int severity : {1, 2}) {
        for (const int64_t image : {0, 1}) first.insert(Draw(seed, name, severity, image).bits());
      }
    }
  }
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(Draw(1, "fog", 2, 3).bits(), Draw(1, "fog", 2, 3).bits());
}

// The share below each of many thresholds, tails included, within four standard errors.
TEST(Draw, NormalHasTheNormalDistribution) {
  Draw draw(1, "normal", 1, 0);
  constexpr int kCount = 400000;
  std::vector<double> found(kCount);
  for (double& x : found) x = draw.normal();
  for (double z = -4.2; z <= 4.2; z += 0.1) {
    const double expected = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    double below = 0;
    for (const double x : found) below += x < z;
    EXPECT_NEAR(below / kCount, expected, 4 * std::sqrt(expected * (1 - expected) / kCount) + 1e-6)
        << z;
  }
}

TEST(Draw, BelowIsEven) {
  Draw draw(1, "below", 1, 0);
  std::vector<int> count(10);
  for (int i = 0; i < 100000; ++i) ++count[draw.below(10)];
  for (const int n : count) EXPECT_NEAR(n, 10000, 400);
}

}  // namespace
}  // namespace qact::corrupt
