// The oracle itself, on contexts small enough to work out by hand.
#include "qact/core/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/core/cases.h"

namespace qact::core::reference {
namespace {

TEST(Oracle, WeighsTheTwoSides) {
  const Neuron neuron({3, -1, std::nan(""), 5}, {.positive_share = 0.6});
  EXPECT_EQ(neuron.value, (std::vector<double>{-100, -1, 3, 5, 100}));
  const double expected[] = {0.2, 0.2, 0.2, 0.2, 0.2};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(neuron.weight[i], expected[i], 1e-15);
}

// -100 weighs 0.5, 1 and 100 a quarter each; tau = 1/4, 1/2, 3/4.
TEST(Oracle, InterpolatesOnCumulativeWeights) {
  const auto q = quantiles(Neuron({1}, {}), 3);
  EXPECT_EQ(q, (std::vector<double>{-100, -100, 1}));
  EXPECT_EQ(level(1, q), 3);
  EXPECT_EQ(level(0.99, q), 2);
  // tau = 0.6 lies 0.4 of the way from -100 to 1.
  EXPECT_NEAR(quantiles(Neuron({1}, {}), 4)[2], -100 + 0.4 * 101, 1e-12);
}

TEST(Oracle, GivesTiesOneLevel) {
  const auto q = quantiles(Neuron({0.7, 0.7, 0.7, -0.3, -0.3}, {}), 100);
  for (const double v : q) EXPECT_TRUE(v <= 0.7 || v > 0.7 + 1e-9);
  EXPECT_EQ(level(0.7, q), static_cast<int>(101 * (0.5 + 0.5 * 3 / 4)));
}

TEST(Oracle, HasTheDensityOfItsSmoothedDistribution) {
  const Neuron neuron(core::testing::draw(core::testing::Distribution::normal, 40, 1), {});
  for (const double x : {-99.5, -2.0, 0.0, 0.3, 1.7, 100.2}) {
    const double step = 1e-4;
    const double slope =
        (smoothed_cumulative(neuron, x + step, 0.5) - smoothed_cumulative(neuron, x - step, 0.5)) /
        (2 * step);
    EXPECT_NEAR(density(neuron, x, 0.5), slope, 1e-7);
  }
  EXPECT_NEAR(smoothed_cumulative(neuron, 1000, 0.5), 1, 1e-12);
}

TEST(Oracle, NormalisesBothEnds) {
  const auto x = core::testing::draw(core::testing::Distribution::uniform, 300, 2);
  LayerParameters p;
  p.weight_out = 2;
  p.bias_out = 3;
  const LayerResult result = layer(x, p);
  const double n = static_cast<double>(x.size());
  const double mean = std::accumulate(result.y.begin(), result.y.end(), 0.0) / n;
  double variance = 0;
  for (const double v : result.y) variance += (v - mean) * (v - mean) / n;
  EXPECT_NEAR(mean, 3, 1e-9);
  EXPECT_NEAR(std::sqrt(variance), 2, 1e-3);
}

// Neither a shift nor a scaling of the input changes the output, so no gradient points there.
TEST(Oracle, HasAGradientAcrossShiftAndScale) {
  const auto x = core::testing::draw(core::testing::Distribution::normal, 200, 3);
  const auto grad_y = core::testing::draw(core::testing::Distribution::normal, 200, 4);
  LayerParameters p;
  p.eps = 1e-12;
  const LayerGradient grad = layer_gradient(x, grad_y, p);
  double shift = 0, scale = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    shift += grad.x[i];
    scale += grad.x[i] * x[i];
  }
  EXPECT_NEAR(shift, 0, 1e-9);
  EXPECT_NEAR(scale, 0, 1e-9);
}

}  // namespace
}  // namespace qact::core::reference
