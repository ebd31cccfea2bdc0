// NaN and infinities in the plain operator. NaN is in no context: it gives NaN and changes
// no other element. Infinities rank as extremes and have density 0.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NotANumber, ChangesNoOtherElement) {
  for (const DType dtype : kDTypes) {
    for (const int64_t n : {3, 100, 2000}) {
      auto values = draw(Distribution::normal, n, 101);
      Tensor with_nan({n, 1, 1}, dtype);
      std::vector<double> rest;
      for (int64_t i = 0; i < n; ++i) {
        if (i % 3 == 1) {
          values[i] = std::nan("");
        } else {
          rest.push_back(values[i]);
        }
      }
      with_nan.set(0, values);
      Tensor without({static_cast<int64_t>(rest.size()), 1, 1}, dtype);
      without.set(0, rest);
      const ActivationRun run(with_nan, {}), spared(without, with(Algorithm::exact));
      const auto y = run.y.get(0), f = run.density.get(0);
      const auto expected_y = spared.y.get(0), expected_f = spared.density.get(0);
      size_t at = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (std::isnan(values[i])) {
          ASSERT_TRUE(std::isnan(y[i]) && std::isnan(f[i]));
        } else {
          ASSERT_EQ(y[i], expected_y[at]) << name(dtype) << ", n = " << n;
          ASSERT_EQ(f[i], expected_f[at]);
          ++at;
        }
      }
    }
  }
}

TEST(NotANumber, AloneLeavesAnEmptyContext) {
  Tensor x({4, 1, 1});
  x.set(0, std::vector<double>(4, std::nan("")));
  for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
    for (const double v : ActivationRun(x, with(algorithm)).y.get(0)) EXPECT_TRUE(std::isnan(v));
  }
}

TEST(Infinities, RankAsExtremesWithoutDensity) {
  for (const int64_t n : {3, 100, 2000}) {
    for (const Algorithm algorithm : {Algorithm::exact, Algorithm::automatic}) {
      auto values = draw(Distribution::normal, n, 103);
      values[0] = kInfinity;
      values[1] = -kInfinity;
      Tensor x({n, 1, 1});
      x.set(0, values);
      values = x.get(0);
      const ActivationRun run(x, with(algorithm));
      const auto y = run.y.get(0), f = run.density.get(0);
      const auto expected = oracle_levels(values, {});
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_FALSE(std::isnan(y[i]) || std::isnan(f[i]));
        ASSERT_EQ(to_level(y[i], 100), expected[i]) << i << " of " << n;
      }
      EXPECT_EQ(f[0], 0);
      EXPECT_EQ(f[1], 0);
      EXPECT_EQ(y[0], 1);
      EXPECT_LT(relative_error(f, oracle_density(values, {})), 1e-5);
    }
  }
}

TEST(Infinities, MayBeAllThereIs) {
  Tensor x({3, 1, 1});
  x.set(0, {kInfinity, -kInfinity, kInfinity});
  for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
    const ActivationRun run(x, with(algorithm));
    EXPECT_EQ(run.y.get(0)[0], 1);
    EXPECT_EQ(run.density.get(0), std::vector<double>(3, 0.0));
  }
}

}  // namespace
}  // namespace qact::core::testing
