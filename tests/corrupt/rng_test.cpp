#include "qact/corrupt/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {
namespace {

TEST(Rng, DependsOnAllOfItsFourNumbers) {
  std::set<uint64_t> first;
  for (const uint64_t seed : {0, 1}) {
    for (const char* name : {"fog", "snow"}) {
      for (const int severity : {1, 2}) {
        for (const int64_t image : {0, 1}) first.insert(Rng(seed, name, severity, image).bits());
      }
    }
  }
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(Rng(1, "fog", 2, 3).bits(), Rng(1, "fog", 2, 3).bits());
}

// No two corruptions, severities or other streams share numbers; the numbers of a seed are fixed.
TEST(Rng, StreamsOfTheirOwn) {
  std::set<base::Stream> streams = {base::corruption_stream("frost_texture", 0)};
  for (const Corruption& corruption : corruptions()) {
    for (int severity = 1; severity <= kSeverities; ++severity) {
      EXPECT_TRUE(streams.insert(base::corruption_stream(corruption.name, severity)).second)
          << corruption.name << " " << severity;
    }
  }
  EXPECT_GT(*streams.begin(), base::Stream::count);
  base::Random severity(7, static_cast<uint64_t>(base::corruption_stream("fog", 3)));
  EXPECT_EQ(Rng(7, "fog", 3, 5).bits(), base::Random(severity.bits(), uint64_t{5}).bits());
  EXPECT_EQ(base::corruption_stream("", 3), base::Stream{0xcbf29ce484222325 + 3});
}

// The share below each of many thresholds, tails included, within four standard errors.
TEST(Rng, NormalHasTheNormalDistribution) {
  Rng rng(1, "normal", 1, 0);
  constexpr int kCount = 400000;
  std::vector<double> found(kCount);
  for (double& x : found) x = rng.normal();
  for (double z = -4.2; z <= 4.2; z += 0.1) {
    const double expected = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    double below = 0;
    for (const double x : found) below += x < z;
    EXPECT_NEAR(below / kCount, expected, 4 * std::sqrt(expected * (1 - expected) / kCount) + 1e-6)
        << z;
  }
}

TEST(Rng, BelowIsEven) {
  Rng rng(1, "below", 1, 0);
  std::vector<int> count(10);
  for (int i = 0; i < 100000; ++i) ++count[rng.below(10)];
  for (const int n : count) EXPECT_NEAR(n, 10000, 400);
}

}  // namespace
}  // namespace qact::corrupt
