// The fused layer against the oracle: norm, activation, norm composed from definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/core/layer_cases.h"

namespace qact::core::testing {
namespace {

class EveryLayoutLayer : public ::testing::TestWithParam<LayerKind> {};

TEST_P(EveryLayoutLayer, EqualsTheComposition) {
  const Layout layout = std::get<Layout>(GetParam());
  expect_composition(
      GetParam(), {{2, 3, 1}, {129, 6, 1}, {2, 3, 45}, {5, 17, 16}, {3, 2, 401}}, {},
      [&](Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile) {
        return LayerRun(x, grad_y, affines, quantile, threads(1), layout);
      });
}

constexpr LayerKind kCases[] = {
    {Layout::contiguous, DType::f32, Algorithm::automatic},
    {Layout::contiguous, DType::f32, Algorithm::exact},
    {Layout::contiguous, DType::f32, Algorithm::binned},
    {Layout::contiguous, DType::f64, Algorithm::exact},
    {Layout::contiguous, DType::f64, Algorithm::binned},
    {Layout::contiguous, DType::bf16, Algorithm::automatic},
    {Layout::contiguous, DType::f16, Algorithm::automatic},
    {Layout::channels_last, DType::f32, Algorithm::automatic},
    {Layout::channels_last, DType::bf16, Algorithm::automatic},
    {Layout::sliced, DType::f32, Algorithm::automatic},
    {Layout::transposed, DType::f64, Algorithm::automatic},
};

INSTANTIATE_TEST_SUITE_P(Layer, EveryLayoutLayer, ::testing::ValuesIn(kCases), kind_name);

// A table of densities serves ranges that its nodes can resolve, and tails beyond it.
TEST(Layer, HasItsGradientsForLongTailsAndLargeWeights) {
  for (const Distribution distribution : {Distribution::normal, Distribution::heavy_tailed}) {
    for (const float weight : {0.01f, 4.0f, -8.0f}) {
      SCOPED_TRACE(std::string(name(distribution)) + " " + std::to_string(weight));
      Tensor x = filled({2, 1, 1100}, distribution, 91);
      Tensor grad_y = gradient_for(x, DType::f32, Layout::contiguous, 92);
      Affines affines(1);
      affines.weight_in[0] = weight;
      const LayerRun run(x, grad_y, affines, {}, threads(1));
      const LayerCase given{x.get(0), grad_y.get(0), affines.of(0), DType::f32, false};
      expect_levels(given, run.found(0));
      expect_gradient(given, run.found(0));
    }
  }
}

// 128 levels of 121 values and the bound: the 61st value begins level 32. It has a bin of its own,
// which is heavy, and the empty bins behind it must not have their level just below.
TEST(Layer, CountsEveryValueWhereALevelBeginsExactlyAtOne) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = filled({21, 24, 49}, Distribution::normal, 93, dtype, Layout::channels_last);
    Tensor grad_y = gradient_for(x, dtype, Layout::channels_last, 94);
    Affines affines(24);
    for (int c = 0; c < 24; ++c) {
      affines.weight_in[c] = c % 2 ? -0.25f : 0.25f;
      affines.bias_in[c] = 0.3f;
    }
    Quantile quantile;
    quantile.levels = 127;
    const LayerRun run(x, grad_y, affines, quantile, threads(1));
    for (int c = 0; c < 24; ++c) {
      SCOPED_TRACE(std::string(name(dtype)) + " channel " + std::to_string(c));
      LayerCase given{x.get(c), grad_y.get(c), affines.of(c), dtype, false};
      given.parameters.quantile.levels = quantile.levels;
      expect_levels(given, run.found(c));
      expect_norms(given, run.found(c));
      if (c < 4) expect_gradient(given, run.found(c));
    }
  }
}

// Far from 0 many values are equal: those that the mean rounds to lie all on one of its sides.
TEST(Layer, TellsSidesFarFromZero) {
  for (const double far : {1e7, -1e7, 16777216.0}) {
    for (const float weight : {1.0f, -1.0f}) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(far);
        Tensor x({3, 1, 700}), grad_y = filled({3, 1, 700}, Distribution::normal, 98);
        std::vector<double> values = draw(Distribution::normal, 2100, seed);
        for (double& v : values) v = far + std::round(2 * v);
        x.set(0, values);
        Affines affines(1);
        affines.weight_in[0] = weight;
        affines.bias_in[0] = 0;
        const LayerRun run(x, grad_y, affines, {}, threads(1));
        expect_levels({x.get(0), grad_y.get(0), affines.of(0), DType::f32, false}, run.found(0));
      }
    }
  }
}

TEST(Layer, KeepsTheContextOfItsNormalisedInput) {
  for (const int64_t n : {100, 3000}) {
    Tensor x = filled({n, 2, 1}, Distribution::bimodal, 93);
    Tensor grad_y = filled({n, 2, 1}, Distribution::normal, 94);
    const Affines affines(2);
    const LayerRun run(x, grad_y, affines, {}, threads(1));
    for (int64_t c = 0; c < 2; ++c) {
      const auto p = affines.of(c);
      const auto oracle = reference::layer(x.get(c), p);
      std::vector<int64_t> expected(kContextBins, 0);
      for (const double v : x.get(c)) {
        const double z =
            p.weight_in * (v - oracle.mean_in) / std::sqrt(oracle.var_in + p.eps) + p.bias_in;
        expected[context_bin(static_cast<float>(z))] += kContextUnit;
      }
      const int64_t* found = run.context.data() + c * kContextBins;
      EXPECT_EQ(std::accumulate(found, found + kContextBins, int64_t{0}), n * kContextUnit);
      // Where a bin of the histogram straddles an edge, a few values fall beyond it.
      int64_t ahead = 0, worst = 0;
      for (int b = 0; b < kContextBins; ++b) {
        ahead += found[b] - expected[b];
        worst = std::max(worst, std::abs(ahead));
      }
      EXPECT_LE(worst, kContextUnit * (n > kExactLimit ? 5 : 0)) << n;
    }
  }
}

// Three quarters of the values are one, others lie around it: by counting, by bins, by sorting.
TEST(Layer, KeepsAContextThatRanksATieAsTheLayerDid) {
  for (const int64_t n : {200, 4000, 40000}) {
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::exact}) {
      for (const double background : {-0.6, 0.0, 0.31}) {
        Tensor x({n, 2, 1}), grad_y = filled({n, 2, 1}, Distribution::normal, 94);
        std::vector<double> values = draw(Distribution::normal, n, 95);
        for (int64_t i = 0; i < n; ++i) values[i] = i % 4 ? background : values[i];
        for (const int64_t c : {0, 1}) x.set(c, values);
        const Affines affines(2);
        const LayerRun run(x, grad_y, affines, with(algorithm), threads(1));
        for (int64_t c = 0; c < 2; ++c) {
          const auto p = affines.of(c);
          const auto oracle = reference::layer(x.get(c), p);
          const int64_t* found = run.context.data() + c * kContextBins;
          EXPECT_EQ(std::accumulate(found, found + kContextBins, int64_t{0}), n * kContextUnit);
          std::vector<double> q(100);
          context_quantiles(ConstContextRow(found, kContextBins), {}, q.data());
          const double z =
              p.weight_in * (x.get(c)[1] - oracle.mean_in) / std::sqrt(oracle.var_in + p.eps) +
              p.bias_in;
          const auto level = std::upper_bound(q.begin(), q.end(), z) - q.begin();
          EXPECT_NEAR(level, run.levels_of(c)[1], 2) << n << ", " << background << ", " << c;
        }
      }
    }
  }
}

TEST(Layer, GivesNanForAChannelThatHoldsOneAndSparesTheOthers) {
  const Shape shape{40, 3, 16};
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Tensor x = filled(shape, Distribution::normal, 95), clean = x;
    Tensor grad_y = filled(shape, Distribution::normal, 96);
    auto values = x.get(1);
    values[7] = bad;
    x.set(1, values);
    const Affines affines(3);
    const LayerRun run(x, grad_y, affines, {}, threads(1)),
        spared(clean, grad_y, affines, {}, threads(1));
    for (const double v : run.y.get(1)) EXPECT_TRUE(std::isnan(v));
    for (const double v : run.grad_x.get(1)) EXPECT_TRUE(std::isnan(v));
    for (int b = 0; b < kContextBins; ++b) EXPECT_EQ(run.context[kContextBins + b], 0);
    for (const int64_t c : {0, 2}) {
      EXPECT_EQ(run.y.get(c), spared.y.get(c));
      EXPECT_EQ(run.grad_x.get(c), spared.grad_x.get(c));
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
