// The exact algorithm: equal to the oracle, and invariant.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

// Levels that differ are excused only at a quantile within 1e-6 of the value itself.
int unexcused(const std::vector<double>& x, const std::vector<double>& y,
              const Quantile& quantile) {
  const auto q = reference::quantiles(reference::Neuron(x, parameters(quantile)), quantile.levels);
  int out = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int found = to_level(y[i], quantile.levels), expected = reference::level(x[i], q);
    if (found == expected) continue;
    const double between = q[std::min(found, expected)];
    const bool tie = std::abs(x[i] - between) <= 1e-6 * std::max(1.0, std::abs(x[i]));
    out += !(tie && std::abs(found - expected) == 1);
  }
  return out;
}

class EveryLayout : public ::testing::TestWithParam<std::tuple<Layout, DType>> {};

TEST_P(EveryLayout, EqualsTheOracle) {
  const auto [layout, dtype] = GetParam();
  for (const Shape& shape : kShapes) {
    for (const Distribution distribution : kDistributions) {
      Tensor x = filled(shape, distribution, 11, dtype, layout);
      const ActivationRun run(x, with(Algorithm::exact), threads(1), layout);
      ASSERT_TRUE(run.y.intact() && run.density.intact());
      for (int64_t c = 0; c < shape.channels; ++c) {
        ASSERT_EQ(unexcused(x.get(c), run.y.get(c), {}), 0)
            << name(distribution) << " " << shape.batch << "x" << shape.channels << "x"
            << shape.spatial << " channel " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, EveryLayout,
                         ::testing::Combine(::testing::ValuesIn(kLayouts),
                                            ::testing::ValuesIn(kDTypes)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param))) + "_" +
                                  name(std::get<1>(info.param));
                         });

TEST(Exact, EqualsTheOracleForOtherParameters) {
  for (const int levels : {2, 7, 100, 1000, 65535}) {
    for (const double share : {0.1, 0.5, 0.9}) {
      for (const double bound : {0.5, 100.0}) {
        Quantile quantile = with(Algorithm::exact);
        quantile.levels = levels;
        quantile.positive_share = share;
        quantile.bound = bound;
        Tensor x = filled({150, 1, 1}, Distribution::normal, 5, DType::f64);
        const ActivationRun run(x, quantile);
        EXPECT_EQ(unexcused(x.get(0), run.y.get(0), quantile), 0)
            << levels << " levels, p " << share << ", c " << bound;
      }
    }
  }
}

TEST(Exact, GivesTheCumulativeWeightUnquantised) {
  Quantile quantile;
  quantile.quantised = false;
  for (const Distribution distribution : kDistributions) {
    Tensor x = filled({31, 2, 17}, distribution, 3, DType::f64);
    const ActivationRun run(x, quantile);
    for (int64_t c = 0; c < 2; ++c) {
      const auto values = x.get(c), y = run.y.get(c);
      const reference::Neuron neuron(values, {});
      for (size_t i = 0; i < values.size(); ++i) {
        double expected = 0;
        for (size_t k = 0; k < neuron.value.size(); ++k) {
          if (neuron.value[k] <= values[i]) expected += neuron.weight[k];
        }
        ASSERT_NEAR(y[i], expected, 1e-12) << name(distribution);
      }
    }
  }
}

// The k-th distinct value above 0 becomes k / 1000, and so below it.
std::vector<double> by_rank(const std::vector<double>& x) {
  std::vector<double> distinct = x;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const auto zero = std::lower_bound(distinct.begin(), distinct.end(), 0.0);
  std::vector<double> out;
  for (const double v : x) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), v);
    out.push_back(static_cast<double>(at - zero) / 1000);
  }
  return out;
}

std::vector<double> each(const std::vector<double>& x, const std::function<double(double)>& map) {
  std::vector<double> out;
  for (const double v : x) out.push_back(map(v));
  return out;
}

TEST(Exact, IsUnchangedByIncreasingMaps) {
  using Map = std::function<std::vector<double>(const std::vector<double>&)>;
  const std::pair<const char*, Map> maps[] = {
      {"halves", [](const auto& x) { return each(x, [](double v) { return v / 2; }); }},
      {"cubes", [](const auto& x) { return each(x, [](double v) { return v * v * v / 1e4; }); }},
      {"roots",
       [](const auto& x) {
         return each(x, [](double v) { return std::copysign(std::sqrt(std::abs(v)), v); });
       }},
      {"arcs", [](const auto& x) { return each(x, [](double v) { return std::atan(v); }); }},
      {"ranks", by_rank},
  };
  const Distribution within_bound[] = {
      Distribution::normal,   Distribution::uniform,  Distribution::bimodal, Distribution::ties,
      Distribution::constant, Distribution::positive, Distribution::negative};
  for (const Distribution distribution : within_bound) {
    for (const int64_t n : {1, 2, 37, 1000}) {
      Tensor x = filled({n, 1, 1}, distribution, 21, DType::f64);
      const auto expected = ActivationRun(x, with(Algorithm::exact)).y;
      for (const auto& [what, map] : maps) {
        Tensor mapped({n, 1, 1}, DType::f64);
        mapped.set(0, map(x.get(0)));
        EXPECT_TRUE(ActivationRun(mapped, with(Algorithm::exact)).y == expected)
            << what << " of " << name(distribution) << ", n = " << n;
      }
    }
  }
}

TEST(Exact, SamplesTheDensityBySeed) {
  Quantile whole = with(Algorithm::exact), sampled = whole;
  sampled.density_samples = 1000;
  sampled.seed = 5;
  Quantile other = sampled;
  other.seed = 6;
  Tensor x({400, 2, 1}, DType::f64);
  for (const int64_t c : {0, 1}) x.set(c, draw(Distribution::normal, 400, 9));
  const ActivationRun full(x, whole), first(x, sampled);
  EXPECT_TRUE(first.y == full.y);
  EXPECT_TRUE(first == ActivationRun(x, sampled, threads(2)));
  EXPECT_FALSE(first == ActivationRun(x, other));
  EXPECT_NE(first.density.get(0), first.density.get(1)) << "channels share their draws";
  EXPECT_LT(relative_error(first.density.get(0), full.density.get(0)), 0.15);

  std::vector<double> mean(400, 0.0);
  constexpr int kSeeds = 200;
  for (int seed = 0; seed < kSeeds; ++seed) {
    sampled.seed = seed;
    const auto drawn = ActivationRun(x, sampled).density.get(0);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += drawn[i] / kSeeds;
  }
  EXPECT_LT(relative_error(mean, full.density.get(0)), 0.01);
}

}  // namespace
}  // namespace qact::core::testing
