// The fused layer against the oracle: norm, activation, norm composed from definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

double precision(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-12;
    case DType::f32:
      return 1e-5;
    case DType::f16:
      return 1e-3;
    default:
      return 8e-3;
  }
}

LayerStats stats_of(const LayerRun& run, int64_t c) {
  LayerStats out;
  std::memcpy(&out, run.stats.data() + c * kLayerStats, sizeof(out));
  return out;
}

// y and the statistics follow from x and the levels that were found.
void check_norms(const std::vector<double>& x, const LayerRun& run, int64_t c,
                 const reference::LayerParameters& p, DType dtype) {
  const reference::LayerResult oracle = reference::layer(x, p);
  const std::vector<int> level = run.levels_of(c);
  const double n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const int k : level) mean += k;
  mean /= 100.0 * n;
  for (const int k : level) variance += std::pow(k / 100.0 - mean, 2) / n;
  const LayerStats stats = stats_of(run, c);
  const double spread = std::sqrt(oracle.var_in);
  EXPECT_NEAR(stats.mean_in, oracle.mean_in, 1e-5 * spread + 1e-9 * std::abs(oracle.mean_in));
  EXPECT_NEAR(stats.var_in, oracle.var_in, 1e-5 * oracle.var_in);
  EXPECT_NEAR(stats.mean_out, mean, 1e-12);
  EXPECT_NEAR(stats.var_out, variance, 1e-12);
  const std::vector<double> y = run.y.get(c);
  const double scale = p.weight_out / std::sqrt(variance + p.eps);
  for (size_t i = 0; i < y.size(); ++i) {
    const double expected = scale * (level[i] / 100.0 - mean) + p.bias_out;
    ASSERT_NEAR(y[i], expected, precision(dtype) * (1 + std::abs(scale)));
  }
}

// The sums over a channel that make an affine gradient cancel, so their error is measured
// by the norm of their terms.
struct AffineTerms {
  double norm[4] = {};
  double before_norms = 0;  // of what reaches z before either norm takes its share out

  AffineTerms(const std::vector<double>& x, const std::vector<double>& grad_y,
              const reference::LayerParameters& p) {
    const reference::LayerResult r = reference::layer(x, p);
    const double s1 = std::sqrt(r.var_in + p.eps), s2 = std::sqrt(r.var_out + p.eps);
    const double n = static_cast<double>(x.size());
    std::vector<double> z, yhat;
    double dy = 0, dy_yhat = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      z.push_back(p.weight_in * (x[i] - r.mean_in) / s1 + p.bias_in);
      yhat.push_back((r.level[i] / 100.0 - r.mean_out) / s2);
      dy += grad_y[i] / n;
      dy_yhat += grad_y[i] * yhat[i] / n;
    }
    const reference::Neuron neuron(z, p.quantile);
    for (size_t i = 0; i < x.size(); ++i) {
      const double f = reference::density(neuron, z[i], p.quantile.bandwidth);
      const double dz = f * p.weight_out / s2 * (grad_y[i] - dy - yhat[i] * dy_yhat);
      const double term[4] = {dz * (x[i] - r.mean_in) / s1, dz, grad_y[i] * yhat[i], grad_y[i]};
      for (int k = 0; k < 4; ++k) norm[k] += term[k] * term[k];
      before_norms += std::pow(f * p.weight_out / s2 * grad_y[i], 2);
    }
    for (double& v : norm) v = std::sqrt(v);
    before_norms = std::sqrt(before_norms);
  }
};

double norm_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

void check_gradient(const std::vector<double>& x, const std::vector<double>& grad_y,
                    const LayerRun& run, int64_t c, const reference::LayerParameters& p,
                    DType dtype) {
  constexpr double kTolerance = 0.05;
  const reference::LayerGradient oracle = reference::layer_gradient(x, grad_y, p);
  const AffineTerms terms(x, grad_y, p);
  std::vector<double> error = run.grad_x.get(c);
  for (size_t i = 0; i < x.size(); ++i) error[i] -= oracle.x[i];
  // A norm takes the mean and the part along its values out of the gradient: of two values
  // nothing remains but rounding.
  const double through =
      std::abs(p.weight_in) * terms.before_norms / std::sqrt(reference::layer(x, p).var_in + p.eps);
  EXPECT_LT(norm_of(error), kTolerance * norm_of(oracle.x) + 10 * precision(dtype) * through)
      << "grad_x";
  const double expected[4] = {oracle.weight_in, oracle.bias_in, oracle.weight_out, oracle.bias_out};
  const char* what[4] = {"weight_in", "bias_in", "weight_out", "bias_out"};
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR(run.grad_affine[4 * c + k], expected[k],
                kTolerance * terms.norm[k] +
                    10 * precision(dtype) * (k < 2 ? terms.before_norms : terms.norm[3]))
        << what[k];
  }
}

// Bins may be off by a level; ranks are exact but for z that round to the same float.
void check_levels(const std::vector<double>& x, const LayerRun& run, int64_t c,
                  const reference::LayerParameters& p) {
  const std::vector<int> expected = reference::layer(x, p).level, found = run.levels_of(c);
  int64_t beyond_one = 0;
  int worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int off = std::abs(found[i] - expected[i]);
    worst = std::max(worst, off);
    beyond_one += off > 1;
  }
  EXPECT_LE(worst, 2);
  EXPECT_LE(1000 * beyond_one, static_cast<int64_t>(x.size()));
}

using Case = std::tuple<Layout, DType, Algorithm>;
class EveryLayoutLayer : public ::testing::TestWithParam<Case> {};

TEST_P(EveryLayoutLayer, EqualsTheComposition) {
  const auto [layout, dtype, algorithm] = GetParam();
  const Shape shapes[] = {{2, 3, 1}, {129, 6, 1}, {2, 3, 45}, {5, 17, 16}, {3, 2, 401}};
  for (const Shape& shape : shapes) {
    for (const Distribution distribution : kDistributions) {
      SCOPED_TRACE(std::string(name(distribution)) + " of " + std::to_string(shape.context_size()));
      // A constant's gradient is beyond what half can hold.
      if (dtype == DType::f16 && distribution == Distribution::constant) continue;
      Tensor x = filled(shape, distribution, 81, dtype, layout);
      Tensor grad_y = filled(shape, Distribution::normal, 82, dtype, layout);
      const Affines affines(shape.channels);
      const LayerRun run(x, grad_y, affines, with(algorithm), threads(1), layout);
      ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
      for (int64_t c = 0; c < shape.channels; ++c) {
        SCOPED_TRACE("channel " + std::to_string(c));
        const auto values = x.get(c), grads = grad_y.get(c);
        check_levels(values, run, c, affines.of(c));
        check_norms(values, run, c, affines.of(c), dtype);
        check_gradient(values, grads, run, c, affines.of(c), dtype);
        if (HasFailure()) return;
      }
    }
  }
}

constexpr Case kCases[] = {
    {Layout::contiguous, DType::f32, Algorithm::automatic},
    {Layout::contiguous, DType::f32, Algorithm::exact},
    {Layout::contiguous, DType::f32, Algorithm::binned},
    {Layout::contiguous, DType::f64, Algorithm::automatic},
    {Layout::contiguous, DType::bf16, Algorithm::automatic},
    {Layout::contiguous, DType::f16, Algorithm::automatic},
    {Layout::channels_last, DType::f32, Algorithm::automatic},
    {Layout::channels_last, DType::bf16, Algorithm::automatic},
    {Layout::sliced, DType::f32, Algorithm::automatic},
    {Layout::transposed, DType::f64, Algorithm::automatic},
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  constexpr const char* kAlgorithms[] = {"auto", "exact", "binned"};
  const auto [layout, dtype, algorithm] = info.param;
  return std::string(name(layout)) + "_" + name(dtype) + "_" +
         kAlgorithms[static_cast<int>(algorithm)];
}

INSTANTIATE_TEST_SUITE_P(Layer, EveryLayoutLayer, ::testing::ValuesIn(kCases), case_name);

// A table of densities serves ranges that its nodes can resolve, and tails beyond it.
TEST(Layer, HasItsGradientsForLongTailsAndLargeWeights) {
  for (const Distribution distribution : {Distribution::normal, Distribution::heavy_tailed}) {
    for (const float weight : {0.01f, 4.0f, -8.0f}) {
      SCOPED_TRACE(std::string(name(distribution)) + " " + std::to_string(weight));
      Tensor x = filled({2, 1, 1100}, distribution, 91);
      Tensor grad_y = filled({2, 1, 1100}, Distribution::normal, 92);
      Affines affines(1);
      affines.weight_in[0] = weight;
      const LayerRun run(x, grad_y, affines, {}, threads(1));
      check_gradient(x.get(0), grad_y.get(0), run, 0, affines.of(0), DType::f32);
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

TEST(Layer, SavesAtMostFiveBytesPerValueAndASmallTable) {
  EXPECT_LE(kDensityNodes * sizeof(int32_t) + sizeof(LayerStats), 1100u);
}

}  // namespace
}  // namespace qact::core::testing
