// Codes: what the fused layer keeps of a value for its backward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "qact/core/codes.h"
#include "tests/core/activation_run.h"
#include "tests/core/code_bounds.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

TEST(CodeCells, CoverTheRangeInAscendingOrder) {
  for (const auto& [low, high] : {std::pair{-3.5, 3.2}, {-0.1, 9.0}, {0.2, 0.3}, {-31.0, 0.5}}) {
    const CodeCells cells(low, high, 100);
    EXPECT_EQ(cells.cells(), 156);
    double last = low;
    for (int j = 1; j < cells.cells(); ++j) {
      EXPECT_GT(cells.edge(j), last);
      last = cells.edge(j);
    }
    EXPECT_LT(last, high);
    EXPECT_NEAR(cells.farthest(), std::max(std::abs(low), std::abs(high)), 1e-9);
  }
}

TEST(CodeCells, AreNoMoreThanTheCodesThatLevelsLeave) {
  EXPECT_EQ(CodeCells(-1, 1, 255).cells(), 1);
  EXPECT_EQ(CodeCells(-1, 1, 2).cells(), 254);
  const CodeCells point(0, 0, 100);
  for (int j = 1; j < point.cells(); ++j) EXPECT_EQ(point.edge(j), 0);
}

// A value of every kind of awkward context has a code that tells its level, and codes ascend with
// z.
TEST(Codes, AscendWithTheValueAndTellItsLevel) {
  for (const Distribution distribution : kDistributions) {
    for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
      for (const int levels : {2, 100, 127, 255}) {
        const Shape shape{3, 2, 400};
        Tensor x = filled(shape, distribution, 141, DType::f32, Layout::contiguous);
        Tensor grad_y = filled(shape, Distribution::normal, 142, DType::f32, Layout::contiguous);
        Quantile quantile = with(algorithm);
        quantile.levels = levels;
        const Affines affines(2);
        const LayerRun run(x, grad_y, affines, quantile, threads(1));
        for (int64_t c = 0; c < 2; ++c) {
          const std::vector<double> values = x.get(c);
          std::vector<int64_t> order(values.size());
          for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
          const double sign = affines.weight_in[c];
          std::sort(order.begin(), order.end(),
                    [&](int64_t a, int64_t b) { return sign * values[a] < sign * values[b]; });
          const uint8_t* code = run.code.data() + c * shape.context_size();
          const std::vector<int> level = run.levels_of(c);
          std::vector<int> level_of(kCodes, -1);
          for (size_t i = 0; i < order.size(); ++i) {
            const int64_t at = order[i];
            ASSERT_LE(code[order[i > 0 ? i - 1 : 0]], code[at]) << name(distribution);
            int& known = level_of[code[at]];
            ASSERT_EQ(known < 0 ? level[at] : known, level[at])
                << name(distribution) << " " << levels;
            known = level[at];
          }
        }
      }
    }
  }
}

// Empty bins behind heavy ones part the runs of equal codes, so that there are more runs than
// codes. Room for too few shows in the heap only.
TEST(Codes, MayHaveMoreRunsOfBinsThanCodes) {
  for (const int levels : {127, 128, 254, 255}) {
    for (const Shape shape : {Shape{21, 24, 49}, {128, 24, 16}, {128, 24, 36}, {1, 24, 512}}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
          Tensor x = filled(shape, Distribution::normal, 145, dtype, layout);
          Tensor grad_y = filled(shape, Distribution::normal, 146, dtype, layout);
          Quantile quantile;
          quantile.levels = levels;
          const Affines affines(shape.channels);
          const LayerRun run(x, grad_y, affines, quantile, threads(1), layout);
          reference::LayerParameters parameters = affines.of(0);
          parameters.quantile.levels = levels;
          const LayerCase given{x.get(0), grad_y.get(0), parameters, dtype, /*exact=*/false};
          expect_levels(given, run.found(0));
        }
      }
    }
  }
}

TEST(Codes, AWeightOfZeroStillHasItsGradient) {
  const Shape shape{4, 1, 300};
  Tensor x = filled(shape, Distribution::normal, 143, DType::f64, Layout::contiguous);
  Tensor grad_y = filled(shape, Distribution::normal, 144, DType::f64, Layout::contiguous);
  Affines affines(1);
  affines.weight_in[0] = 0;
  const LayerRun run(x, grad_y, affines, {}, threads(1));
  const LayerCase given{x.get(0), grad_y.get(0), affines.of(0), DType::f64, /*exact=*/true};
  expect_gradient(given, run.found(0));
  EXPECT_NE(run.grad_affine[0], 0);
  for (const double dx : run.grad_x.get(0)) EXPECT_EQ(dx, 0);
}

TEST(Codes, KeepGradientsOfTheTailsWithinTheirBounds) {
  expect_all_bounds(
      [](Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
         Layout layout) { return LayerRun(x, grad_y, affines, quantile, threads(1), layout); });
}

// Of the layer's one channel, against the density of every pair of values.
double gradient_error(const std::vector<double>& values, double weight, double bias,
                      const Quantile& quantile, DType dtype) {
  const auto n = static_cast<int64_t>(values.size());
  Tensor x({1, 1, n}, dtype), grad_y({1, 1, n}, dtype);
  x.set(0, values);
  grad_y.set(0, draw(Distribution::normal, n, 171));
  Affines affines(1);
  affines.weight_in[0] = static_cast<float>(weight);
  affines.bias_in[0] = static_cast<float>(bias);
  const LayerRun run(x, grad_y, affines, quantile, threads(1));

  reference::LayerParameters p = affines.of(0);
  p.quantile.bandwidth = quantile.bandwidth;
  p.quantile.positive_share = quantile.positive_share;
  const std::vector<double> rounded = x.get(0);
  double mean = 0, variance = 0;
  for (const double v : rounded) mean += v / static_cast<double>(n);
  for (const double v : rounded) variance += (v - mean) * (v - mean) / static_cast<double>(n);
  std::vector<double> z, density(n);
  for (const double v : rounded)
    z.push_back((v - mean) / std::sqrt(variance + 1e-5) * weight + bias);
  const auto negatives = std::count_if(z.begin(), z.end(), [](double v) { return v < 0; });
  const double below = (1 - p.quantile.positive_share) / static_cast<double>(negatives + 1);
  const double above = p.quantile.positive_share / static_cast<double>(n - negatives + 1);
  const auto kernel = [&](double distance) {
    const double t = distance / p.quantile.bandwidth;
    return std::exp(-0.5 * t * t) / p.quantile.bandwidth / std::sqrt(2 * M_PI);
  };
  for (int64_t i = 0; i < n; ++i) {
    density[i] = below * kernel(z[i] + quantile.bound) + above * kernel(z[i] - quantile.bound);
    for (const double other : z) density[i] += (other < 0 ? below : above) * kernel(z[i] - other);
  }
  const auto oracle =
      reference::layer_gradient(rounded, grad_y.get(0), run.levels_of(0), density, p);
  return relative(run.grad_x.get(0), oracle.x);
}

// Hundreds of bandwidths, nearly all values on a few of them.
TEST(Codes, KeepGradientsOfContextsWithFarOutliers) {
  for (const double weight : {1.5, -1.5, 5.0, 20.0}) {  // up to 2,000 bandwidths
    for (const double bias : {0.3, -0.5}) {
      std::vector<double> dead(3000);
      dead[5] = 4, dead[700] = 5, dead[2000] = 1000;
      EXPECT_LE(gradient_error(dead, weight, bias, {}, DType::f32), 0.02) << weight << " " << bias;
    }
  }
  for (const double share : {0.01, 0.5, 0.99}) {
    Quantile quantile;
    quantile.positive_share = share;
    quantile.bandwidth = 0.1;
    std::vector<double> values = draw(Distribution::normal, 513, 172);
    values[77] = 1e10;
    EXPECT_LE(gradient_error(values, 8, 0, quantile, DType::f64), 0.02) << share;
  }
}

// A code spans several bandwidths there, so that its values differ in their density: it has their
// mean.
TEST(Codes, KeepTheMeanDensityInContextsOfManyBandwidths) {
  const std::vector<double> values = draw(Distribution::normal, 3000, 173);
  for (const auto& [weight, bound] : {std::pair{30.0, 0.05}, {100.0, 0.15}, {300.0, 0.3}}) {
    EXPECT_LE(gradient_error(values, weight, 0, {}, DType::f32), bound) << weight;
  }
}

}  // namespace
}  // namespace qact::core::testing
