// Contexts that are ranked a vector of channels at a time, where that is hardest.
#include "qact/core/cpu/short_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

TEST(ShortLayer, IsForShortContextsThatAreRankedExactly) {
  EXPECT_TRUE(cpu::is_short_context({}, 2, DType::f32));
  EXPECT_TRUE(cpu::is_short_context({}, cpu::kShortContext, DType::f32));
  EXPECT_FALSE(cpu::is_short_context({}, cpu::kShortContext + 1, DType::bf16));
  EXPECT_FALSE(cpu::is_short_context({}, 240, DType::f64));  // their codes are kept
  EXPECT_FALSE(cpu::is_short_context(with(Algorithm::binned), 16, DType::f32));
}

void expect_oracle(const Shape& shape, const Affines& affines, const Quantile& quantile,
                   DType dtype, Distribution distribution = Distribution::normal,
                   Layout layout = Layout::contiguous) {
  Tensor x = filled(shape, distribution, 161, dtype, layout);
  Tensor grad_y = filled(shape, Distribution::normal, 162, dtype, layout);
  const LayerRun run(x, grad_y, affines, quantile, threads(1), layout);
  for (int64_t c = 0; c < shape.channels; ++c) {
    reference::LayerParameters parameters = affines.of(c);
    parameters.quantile.bound = quantile.bound;
    parameters.quantile.bandwidth = quantile.bandwidth;
    const LayerCase given{x.get(c), grad_y.get(c), parameters, dtype, /*exact=*/true};
    expect_levels(given, run.found(c));
    expect_norms(given, run.found(c));
    expect_gradient(given, run.found(c));
    if (::testing::Test::HasFailure()) return;
  }
}

// The sort has as many rows as the next power of two.
TEST(ShortLayer, SortsContextsOfEveryLength) {
  for (int64_t n = 2; n <= cpu::kShortContext; n += n < 35 ? 1 : n < 250 ? 29 : 1) {
    for (const Layout layout : kLayouts) {
      for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
        SCOPED_TRACE(std::to_string(n) + " values, " + name(layout) + ", " + name(distribution));
        expect_oracle({1, 17, n}, Affines(17), {}, DType::f32, distribution, layout);
        if (HasFailure()) return;
      }
    }
  }
  for (const int64_t n : {2, 9, 63, 130, 231}) {
    for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
      SCOPED_TRACE(std::to_string(n) + " values in float64, " + name(distribution));
      expect_oracle({1, 11, n}, Affines(11), {}, DType::f64, distribution);
      if (HasFailure()) return;
    }
  }
}

TEST(ShortLayer, TellsAMeanExactlyWhereItCan) {
  for (int64_t n = 3; n < 60; n += 2) {  // -k, ..., k around a mean of 3
    std::vector<double> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(3 + i - n / 2));
    Tensor x({n, 1, 1}, DType::f32), grad_y({n, 1, 1}, DType::f32);
    x.set(0, values);
    const LayerRun run(x, grad_y, Affines(1), {}, threads(1));
    LayerStats stats;
    std::memcpy(&stats, run.stats.data(), sizeof(stats));
    EXPECT_EQ(stats.mean_in, 3.0) << n;
  }
}

// Gaps between neighbours from far less than a bandwidth to many of them.
TEST(ShortLayer, HasGradientsForEveryBandwidth) {
  for (const double bandwidth : {0.02, 0.1, 0.3, 3.0}) {
    SCOPED_TRACE(bandwidth);
    Quantile quantile;
    quantile.bandwidth = bandwidth;
    expect_oracle({1, 5, 200}, Affines(5), quantile, DType::f32);
  }
}

TEST(ShortLayer, HasGradientsOfVeryWideContexts) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Affines affines(19);
    affines.weight_in[3] = 40;
    affines.weight_in[17] = -300;
    expect_oracle({60, 19, 1}, affines, {}, dtype);
  }
}

// Values beyond the bounds, and bounds within the grid.
TEST(ShortLayer, CountsBoundsAmongItsValues) {
  for (const double bound : {0.5, 2.0, 5.0}) {
    Quantile quantile;
    quantile.bound = bound;
    expect_oracle({31, 5, 4}, Affines(5), quantile, DType::f32);
  }
}

// z overflows for a third of the values, at either end.
TEST(ShortLayer, RanksInfiniteZAsExtremes) {
  const Shape shape{64, 2, 1};
  Tensor x = filled(shape, Distribution::normal, 165, DType::f32, Layout::contiguous);
  Tensor grad_y = filled(shape, Distribution::normal, 166, DType::f32, Layout::contiguous);
  Affines affines(shape.channels);
  affines.weight_in = {3e38, -3e38};
  affines.weight_out = {1, 1};
  const LayerRun run(x, grad_y, affines, {}, threads(1));
  for (int64_t c = 0; c < shape.channels; ++c) {
    const std::vector<double> y = run.y.get(c), values = x.get(c);
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) {
        const double rise = c == 0 ? y[j] - y[i] : y[i] - y[j];
        if (values[i] < values[j]) {
          EXPECT_GE(rise, 0);
        }
      }
    }
  }
}

TEST(ShortLayer, AChannelThatIsNotFiniteLeavesItsNeighboursAlone) {
  const Shape shape{10, 18, 3};
  Tensor x = filled(shape, Distribution::normal, 163, DType::f32, Layout::contiguous);
  Tensor grad_y = filled(shape, Distribution::normal, 164, DType::f32, Layout::contiguous);
  const Affines affines(shape.channels);
  const LayerRun clean(x, grad_y, affines, {}, threads(1));
  for (const double odd : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::vector<double> values = x.get(4);
    values[7] = odd;
    Tensor spoilt = filled(shape, Distribution::normal, 163, DType::f32, Layout::contiguous);
    spoilt.set(4, values);
    const LayerRun run(spoilt, grad_y, affines, {}, threads(1));
    for (int64_t c = 0; c < shape.channels; ++c) {
      if (c == 4) {
        for (const double y : run.y.get(c)) EXPECT_TRUE(std::isnan(y));
        for (const double dx : run.grad_x.get(c)) EXPECT_TRUE(std::isnan(dx));
      } else {
        EXPECT_EQ(run.y.get(c), clean.y.get(c)) << c;
        EXPECT_EQ(run.grad_x.get(c), clean.grad_x.get(c)) << c;
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
