// Interpolated quantiles, for values from outside the context, and where they put zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

std::vector<double> quantiles_of(Tensor& x, const Quantile& quantile) {
  std::vector<double> out(x.shape().channels * quantile.levels);
  quantiles({quantile, x.shape(), x.view(), out.data()}, threads(2));
  return out;
}

TEST(Quantiles, EqualTheOracle) {
  for (const Shape& shape : kShapes) {
    for (const Layout layout : kLayouts) {
      for (const Distribution distribution : kDistributions) {
        Tensor x = filled(shape, distribution, 61, DType::f32, layout);
        const auto found = quantiles_of(x, {});
        for (int64_t c = 0; c < shape.channels; ++c) {
          const auto expected = reference::quantiles(reference::Neuron(x.get(c), {}), 100);
          for (int j = 0; j < 100; ++j) {
            const double tolerance = 1e-9 * std::max(1.0, std::abs(expected[j]));
            // On a jump of the quantile function the weights' rounding decides.
            const double lower = j > 0 ? expected[j - 1] : expected[j];
            const double upper = j < 99 ? expected[j + 1] : expected[j];
            ASSERT_TRUE(found[c * 100 + j] >= lower - tolerance &&
                        found[c * 100 + j] <= upper + tolerance);
            if (distribution == Distribution::ties || distribution == Distribution::constant) {
              continue;
            }
            ASSERT_NEAR(found[c * 100 + j], expected[j],
                        1e-6 * std::max(1.0, std::abs(expected[j])))
                << name(distribution) << " of " << shape.context_size() << ", q_" << j + 1;
          }
        }
      }
    }
  }
}

TEST(Quantiles, AscendAndSurviveInfinities) {
  Tensor x({9, 1, 1}, DType::f64);
  const double infinity = std::numeric_limits<double>::infinity();
  x.set(0, {-infinity, -1, 0.5, 2, infinity, infinity, std::nan(""), 3, -4});
  const auto q = quantiles_of(x, {});
  EXPECT_TRUE(std::is_sorted(q.begin(), q.end()));
  for (const double v : q) EXPECT_FALSE(std::isnan(v));
}

// Between equal values a quantile is that value, to the last bit, and so never above it.
TEST(Quantiles, OfTiesAreTheTies) {
  for (int64_t i = 0; i < 400; ++i) {
    const double v = 2 + static_cast<double>(i) / 100;
    std::vector<double> values;
    for (const double tie : {-0.7, 0.01, v, 9.0}) values.insert(values.end(), 100, tie);
    Tensor x({400, 1, 1}, DType::f64);
    x.set(0, values);
    const auto q = quantiles_of(x, {});
    EXPECT_TRUE(std::is_sorted(q.begin(), q.end())) << v;
    EXPECT_EQ(
        std::count(q.begin(), q.end(), v),
        std::count_if(q.begin(), q.end(), [&](double each) { return std::abs(each - v) < 1e-9; }));
  }
}

// With p = 0.5, a zero that no value equals lies within 1 + 50.5 / n+ levels of 50.
TEST(Grounding, KeepsZeroInTheMiddle) {
  for (const Distribution distribution : kDistributions) {
    for (const int64_t n : {1, 2, 5, 40, 300, 3000}) {
      for (uint64_t seed = 0; seed < 5; ++seed) {
        Tensor x({n, 1, 1}, DType::f64);
        auto values = draw(distribution, n, seed);
        for (double& v : values) v = v == 0 ? 0.1 : v;
        x.set(0, values);
        double positives = 1;
        for (const double v : values) positives += v >= 0;
        const int level = reference::level(0.0, quantiles_of(x, {}));
        ASSERT_LE(std::abs(level - 50), 1 + 50.5 / positives)
            << name(distribution) << ", n = " << n;
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
