// The plain operator's CUDA kernels, emulated, against the oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/activation_run.h"
#include "tests/core/cuda/device_memory.h"
#include "tests/core/layer_check.h"

namespace qact::core::testing {
namespace {

struct CudaActivationRun {
  Tensor y, density;

  CudaActivationRun(Tensor& x, const Quantile& quantile) : y(x), density(x) {
    ActivationForward call;
    call.quantile = quantile;
    call.shape = x.shape();
    call.x = x.view();
    call.y = y.view();
    call.density = density.view();
    run_with_scratch(cuda::activation_forward_scratch(call),
                     [&](const cuda::Stream& stream) { cuda::activation_forward(call, stream); });
  }

  bool operator==(const CudaActivationRun& other) const = default;
};

// Where the bound lies among the values, binned levels may be off by one value more.
double slack(const std::vector<double>& x, const Quantile& quantile) {
  double negatives = 0, out = tolerance::level(/*exact=*/false);
  bool beyond = false;
  for (const double v : x) {
    negatives += v < 0;
    beyond |= std::abs(v) >= quantile.bound;
  }
  const double fewest = std::min(negatives, static_cast<double>(x.size()) - negatives) + 1;
  return beyond ? out + (quantile.levels + 1) / fewest : out;
}

void expect_oracle(Tensor& x, const Quantile& quantile, Distribution distribution) {
  const CudaActivationRun run(x, quantile);
  ASSERT_TRUE(run.y.intact() && run.density.intact());
  for (const int64_t c : {int64_t{0}, x.shape().channels - 1}) {
    const std::vector<double> values = x.get(c), y = run.y.get(c);
    std::vector<int> level;
    for (const double v : y) level.push_back(to_level(v, quantile.levels));
    const bool exact = quantile.exact_for(x.shape().context_size());
    expect_levels(values, level, parameters(quantile),
                  exact ? tolerance::level(true) : slack(values, quantile),
                  [](double) { return 0.0; });
    // Over so wide a range, bins are no narrower than the density's nodes.
    const double allowed = distribution == Distribution::beyond_bound ? 0.15 : 0.02;
    EXPECT_LE(relative_error(run.density.get(c), oracle_density(values, quantile)), allowed);
  }
}

TEST(CudaActivation, EqualsTheOracle) {
  for (const Shape& shape : {Shape{1, 2, 1}, {50, 2, 5}, {300, 2, 1}, {3, 2, 301}}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
        for (const Distribution distribution : kDistributions) {
          SCOPED_TRACE(std::string(name(distribution)) + " of " +
                       std::to_string(shape.context_size()) + " " + name(layout));
          Tensor x = filled(shape, distribution, 301, DType::f32, layout);
          expect_oracle(x, with(algorithm), distribution);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(CudaActivation, EqualsTheOracleOfOtherTypesAndLevels) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      for (const Shape& shape : {Shape{10, 2, 20}, {5, 35, 70}}) {
        Quantile quantile = with(Algorithm::exact);
        quantile.levels = 31;
        Tensor x = filled(shape, Distribution::normal, 302, dtype, layout);
        expect_oracle(x, quantile, Distribution::normal);
      }
    }
  }
  for (const int levels : {1, 127, 128, 254, 255}) {
    Quantile quantile = with(Algorithm::exact);
    quantile.levels = levels;
    Tensor x = filled({3, 2, 400}, Distribution::bimodal, 303);
    expect_oracle(x, quantile, Distribution::bimodal);
  }
}

// Values far beyond those that bins are made for add nothing to the density of one at their end.
TEST(CudaActivation, LeavesFarValuesOutOfTheDensityOfOthers) {
  Tensor x = filled({1500, 1, 1}, Distribution::uniform, 306);
  std::vector<double> values = x.get(0);
  for (int i = 0; i < 5; ++i) values[i] = -1e5 * (i + 1);
  values[5] = -6.8;  // bins end eight bandwidths below the first threshold, which is near -3
  x.set(0, values);
  for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
    const Quantile quantile = with(algorithm);
    const double found = CudaActivationRun(x, quantile).density.get(0)[5];
    const double expected = oracle_density(x.get(0), quantile)[5];
    EXPECT_NEAR(found, expected, 0.05 * expected);
  }
}

// NaN is in no context; infinities rank as extremes, and have no density.
TEST(CudaActivation, RanksInfinitiesAndPassesNanOn) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const int64_t n : {100, 500}) {
    for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
      Tensor x = filled({n, 2, 1}, Distribution::normal, 304);
      std::vector<double> values = x.get(1);
      values[3] = std::nan(""), values[4] = infinity, values[5] = -infinity;
      x.set(1, values);
      const CudaActivationRun run(x, with(algorithm));
      values.erase(values.begin() + 3);
      std::vector<int> found;
      for (const double v : run.y.get(1)) found.push_back(std::isnan(v) ? -1 : to_level(v, 100));
      EXPECT_EQ(found[3], -1);
      found.erase(found.begin() + 3);
      const std::vector<int> expected = oracle_levels(values, {});
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(found[i], expected[i]) << values[i];
      const std::vector<double> density = run.density.get(1);
      EXPECT_TRUE(std::isnan(density[3]));
      EXPECT_EQ(density[4], 0);
      EXPECT_EQ(density[5], 0);
    }
  }
}

TEST(CudaActivation, HasTheSameBitsInEverySchedule) {
  using emulator::Schedule;
  for (const Shape& shape : {Shape{50, 3, 5}, {3, 3, 301}}) {
    for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
      Tensor x = filled(shape, distribution, 305);
      const CudaActivationRun in_order(x, {});
      for (const Schedule& schedule : {Schedule{Schedule::reversed}, {Schedule::shuffled, 1}}) {
        emulator::device().schedule = schedule;
        const CudaActivationRun other(x, {});
        emulator::device().schedule = {};
        EXPECT_TRUE(other == in_order);
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
