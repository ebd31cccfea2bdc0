// The small parts that the algorithms are built from.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "qact/core/cpu/density_grid.h"
#include "qact/core/density.h"
#include "qact/core/levels.h"
#include "qact/core/sort.h"
#include "tests/core/cases.h"
#include "tests/core/narrow.h"

namespace qact::core::testing {
namespace {

template <class Real>
void check_sort(int64_t n) {
  std::vector<Real> values;
  for (const double v : draw(Distribution::ties, n, n)) values.push_back(static_cast<Real>(v));
  for (const double v : draw(Distribution::beyond_bound, n, n)) {
    values.push_back(static_cast<Real>(v));
  }
  const Real infinity = std::numeric_limits<Real>::infinity();
  const Real tiny = std::numeric_limits<Real>::denorm_min();
  for (const Real v : {infinity, -infinity, tiny, -tiny, Real{0}, -Real{0}}) values.push_back(v);
  std::vector<Real> expected = values;
  std::sort(expected.begin(), expected.end());
  std::vector<uint8_t> scratch;
  sort_values(values.data(), static_cast<int64_t>(values.size()), scratch);
  EXPECT_EQ(values, expected);
  for (const Real v : values) EXPECT_FALSE(v == 0 && std::signbit(v));
}

TEST(Sort, EqualsTheStandardLibrarys) {
  for (const int64_t n : {0, 1, 2, 100, 124, 125, 126, 3000}) {
    check_sort<float>(n);
    check_sort<double>(n);
  }
}

TEST(Narrow, RoundsToNearestEvenAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half_bits half{static_cast<uint16_t>(bits)};
    const bfloat16_bits brain{static_cast<uint16_t>(bits)};
    if (std::isnan(widen(half))) {
      EXPECT_TRUE(std::isnan(widen(narrow<half_bits>(widen(half)))));
    } else {
      ASSERT_EQ(narrow<half_bits>(widen(half)).bits, bits);
    }
    if (std::isnan(widen(brain))) {
      EXPECT_TRUE(std::isnan(widen(narrow<bfloat16_bits>(widen(brain)))));
    } else {
      ASSERT_EQ(narrow<bfloat16_bits>(widen(brain)).bits, bits);
    }
  }
  const auto half = [](float v) { return widen(narrow<half_bits>(v)); };
  const auto brain = [](float v) { return widen(narrow<bfloat16_bits>(v)); };
  EXPECT_EQ(half(1 + 0x1p-11f), 1);                        // a tie, to even
  EXPECT_EQ(half(1 + 3 * 0x1p-11f), 1 + 0x1p-9f);          // a tie, to even
  EXPECT_EQ(half(1 + 0x1p-11f + 0x1p-20f), 1 + 0x1p-10f);  // above the tie
  EXPECT_EQ(half(65519), 65504);
  EXPECT_TRUE(std::isinf(half(65520)));
  EXPECT_EQ(half(0x1p-24f), 0x1p-24f);
  EXPECT_EQ(half(0x1p-25f), 0);
  EXPECT_EQ(brain(1 + 0x1p-8f), 1);
  EXPECT_EQ(brain(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);
  EXPECT_TRUE(std::isinf(brain(std::numeric_limits<float>::max())));
}

double gauss(const std::vector<double>& points, double x, double h) {
  double sum = 0;
  for (const double z : points) {
    sum += std::exp(-0.5 * (x - z) * (x - z) / h / h) / (h * std::sqrt(2 * std::numbers::pi));
  }
  return sum / static_cast<double>(points.size());
}

TEST(GaussSum, EqualsThePlainSum) {
  for (const double h : {1e-3, 0.5, 20.0}) {
    auto points = draw(Distribution::heavy_tailed, 300, 1);
    std::sort(points.begin(), points.end());
    GaussSum sum(h);
    for (const double z : points) sum.add(z, 1.0 / 300);
    sum.finish();
    const double peak = gauss(points, points[150], h);
    for (double x = -30; x < 30; x += 0.37) {
      ASSERT_NEAR(sum.at(x), gauss(points, x, h), 1e-8 * peak) << h;
    }
    for (const double z : points) ASSERT_NEAR(sum.at(z), gauss(points, z, h), 1e-8 * peak) << h;
  }
}

TEST(GaussSum, IgnoresWhatIsInfinitelyManyBandwidthsAway) {
  GaussSum sum(0.5);
  for (const double z : {-1.7e308, 0.0, 0.25, 1e308}) sum.add(z, 0.25);
  sum.finish();
  EXPECT_NEAR(sum.at(0), 0.5 * gauss({0, 0.25}, 0, 0.5), 1e-9);
  EXPECT_EQ(sum.at(1e308), 0);
}

TEST(DensityGrid, IsNearThePlainSum) {
  for (const Simd simd : simd_levels()) {
    for (const int64_t n : {1, 2, 50}) {
      const auto points = draw(Distribution::normal, n, n);
      const auto [low, high] = std::minmax_element(points.begin(), points.end());
      cpu::DensityGrid grid;
      grid.reset(*low, *high, 0.5);
      for (const double z : points) grid.add(z, 1.0 / static_cast<double>(n));
      grid.finish(cpu::table_kernels(simd));
      for (const double z : points) ASSERT_NEAR(grid.at(z), gauss(points, z, 0.5), 0.01 * 0.8);
    }
  }
}

TEST(LevelRule, CountsTausAtExactlyTheirWeight) {
  // 101 equal steps: every value reaches a tau exactly.
  Quantile quantile;
  quantile.positive_share = 1.0 / 101;
  const LevelRule rule(quantile, 99, 0);
  for (int64_t rank = 1; rank <= 100; ++rank) EXPECT_EQ(rule.level(false, rank), rank);
  EXPECT_EQ(rule.level(true, 1), 100);
}

}  // namespace
}  // namespace qact::core::testing
