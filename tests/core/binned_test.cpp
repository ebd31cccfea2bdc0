// The binned algorithm: within its bounds of the oracle, chosen when it should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/core/activation_run.h"
#include "tests/core/layer_check.h"
#include "tests/core/tolerance.h"

namespace qact::core::testing {
namespace {

// A bin that holds c or -c does not tell which of its values lie beyond: one value's weight.
void expect_near(Tensor& x, const Quantile& quantile, Layout layout = Layout::contiguous) {
  const ActivationRun run(x, quantile, threads(1), layout);
  ASSERT_TRUE(run.y.intact() && run.density.intact());
  const bool exact = quantile.exact_for(x.shape().context_size());
  for (int64_t c = 0; c < x.shape().channels; ++c) {
    const std::vector<double> values = x.get(c);
    double slack = tolerance::level(exact);
    int64_t negatives = 0;
    bool beyond = false;
    for (const double v : values) {
      negatives += v < 0;
      beyond |= std::abs(v) >= quantile.bound;
    }
    if (!exact && beyond) {
      const double fewest = static_cast<double>(
          std::min(negatives, static_cast<int64_t>(values.size()) - negatives) + 1);
      slack += (quantile.levels + 1) / fewest;
    }
    std::vector<int> found;
    for (const double y : run.y.get(c)) found.push_back(to_level(y, quantile.levels));
    expect_levels(values, found, parameters(quantile), slack, [](double) { return 0.0; });
    if (::testing::Test::HasFailure()) return;
  }
}

class EveryLayoutBinned : public ::testing::TestWithParam<std::tuple<Layout, DType>> {};

TEST_P(EveryLayoutBinned, IsNearTheOracle) {
  const auto [layout, dtype] = GetParam();
  for (const Shape& shape : kShapes) {
    for (const Distribution distribution : kDistributions) {
      Tensor x = filled(shape, distribution, 31, dtype, layout);
      for (const Algorithm algorithm : {Algorithm::binned, Algorithm::automatic}) {
        SCOPED_TRACE(std::string(name(distribution)) + " of " +
                     std::to_string(shape.context_size()));
        expect_near(x, with(algorithm), layout);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Binned, EveryLayoutBinned,
                         ::testing::Combine(::testing::ValuesIn(kLayouts),
                                            ::testing::ValuesIn(kDTypes)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param))) + "_" +
                                  name(std::get<1>(info.param));
                         });

// Long channels count into two histograms.
TEST(Binned, IsNearTheOracleInLargeContexts) {
  for (const Distribution distribution : kDistributions) {
    Tensor x = filled({40, 1, 1001}, distribution, 41);
    SCOPED_TRACE(name(distribution));
    expect_near(x, {});
  }
}

TEST(Binned, IsNearTheOracleForOtherParameters) {
  for (const int levels : {2, 7, 1000, 65535}) {
    for (const double share : {0.1, 0.9}) {
      Quantile quantile = with(Algorithm::binned);
      quantile.levels = levels;
      quantile.positive_share = share;
      quantile.bound = 0.5;
      Tensor x = filled({300, 1, 5}, Distribution::normal, 43, DType::f64);
      SCOPED_TRACE(std::to_string(levels) + " levels, p " + std::to_string(share));
      expect_near(x, quantile);
    }
  }
}

TEST(Binned, TakesOverAboveTheExactLimit) {
  for (const int64_t n : {kExactLimit, kExactLimit + 1}) {
    Tensor x = filled({n, 1, 1}, Distribution::normal, 2);
    const auto expected = n > kExactLimit ? Algorithm::binned : Algorithm::exact;
    EXPECT_TRUE(ActivationRun(x, {}) == ActivationRun(x, with(expected))) << n;
    EXPECT_FALSE(ActivationRun(x, with(Algorithm::exact)) ==
                 ActivationRun(x, with(Algorithm::binned)));
  }
}

// A heavy bin in the middle of light ones: its values are sorted, not smeared.
TEST(Binned, SplitsHeavyBins) {
  auto values = draw(Distribution::uniform, 3000, 1);
  const auto dense = draw(Distribution::normal, 3000, 2);
  for (const double v : dense) values.push_back(1.0 + 1e-5 * v);
  Tensor x({6000, 1, 1}, DType::f64);
  x.set(0, values);
  expect_near(x, {});
}

// Bins of one to two levels each, in a fortieth of the range.
TEST(Binned, SplitsBinsOfAFewLevels) {
  auto values = draw(Distribution::uniform, 3000, 3);
  for (double& v : values) v = 0.5 + v / 40;
  for (const double v : draw(Distribution::uniform, 60, 4)) values.push_back(v);
  Tensor x({static_cast<int64_t>(values.size()), 1, 1});
  x.set(0, values);
  expect_near(x, {});
}

TEST(Outputs, GrowWithInputsAndLieInTheUnitInterval) {
  for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
    for (const Distribution distribution : kDistributions) {
      for (const int64_t n : {1, 2, 300, 5000}) {
        Tensor x = filled({n, 1, 1}, distribution, 51);
        const auto values = x.get(0), y = ActivationRun(x, with(algorithm)).y.get(0);
        std::vector<size_t> order(n);
        std::iota(order.begin(), order.end(), size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](size_t a, size_t b) { return values[a] < values[b]; });
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(y[i] >= 0 && y[i] <= 1);
          if (i == 0) continue;
          const size_t below = order[i - 1], above = order[i];
          ASSERT_LE(y[below], y[above]) << name(distribution);
          ASSERT_TRUE(values[below] < values[above] || y[below] == y[above]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
