// The binned algorithm: within its bounds of the oracle, chosen when it should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

// Within one level at 99.9% of the elements, never off by more than two.
struct Bound {
  int64_t elements = 0, beyond_one = 0;
  int worst = 0;

  void add(const std::vector<double>& x, const std::vector<double>& y, const Quantile& quantile) {
    const std::vector<int> expected = oracle_levels(x, quantile);
    for (size_t i = 0; i < x.size(); ++i) {
      const int off = std::abs(to_level(y[i], quantile.levels) - expected[i]);
      worst = std::max(worst, off);
      beyond_one += off > 1;
      ++elements;
    }
  }
  bool holds() const { return worst <= 2 && 1000 * beyond_one <= elements; }
};

Bound bound_of(Tensor& x, const Quantile& quantile, Layout layout = Layout::contiguous) {
  const ActivationRun run(x, quantile, threads(1), layout);
  EXPECT_TRUE(run.y.intact() && run.density.intact());
  Bound bound;
  for (int64_t c = 0; c < x.shape().channels; ++c) bound.add(x.get(c), run.y.get(c), quantile);
  return bound;
}

class EveryLayoutBinned : public ::testing::TestWithParam<std::tuple<Layout, DType>> {};

TEST_P(EveryLayoutBinned, IsNearTheOracle) {
  const auto [layout, dtype] = GetParam();
  for (const Shape& shape : kShapes) {
    for (const Distribution distribution : kDistributions) {
      Tensor x = filled(shape, distribution, 31, dtype, layout);
      for (const Algorithm algorithm : {Algorithm::binned, Algorithm::automatic}) {
        const Bound bound = bound_of(x, with(algorithm), layout);
        ASSERT_TRUE(bound.holds())
            << name(distribution) << " of " << shape.context_size() << ": off by " << bound.worst
            << ", by more than one at " << bound.beyond_one;
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
    const Bound bound = bound_of(x, {});
    EXPECT_TRUE(bound.holds()) << name(distribution) << ": off by " << bound.worst
                               << ", by more than one at " << bound.beyond_one;
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
      EXPECT_TRUE(bound_of(x, quantile).holds()) << levels << " levels, p " << share;
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
  EXPECT_TRUE(bound_of(x, {}).holds());
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
