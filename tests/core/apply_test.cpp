// Values from outside a context against plain loops over its quantiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "tests/core/apply_run.h"

namespace qact::core::testing {
namespace {

double precision(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : (dtype == DType::f32 ? 1e-5 : 1e-2);
}

// f at the middle of a level, the quantiles as equally heavy points.
double density_at(const double* q, int levels, int level, double h) {
  const double middle = 0.5 * (q[std::max(level - 1, 0)] + q[std::min(level, levels - 1)]);
  double sum = 0;
  for (int j = 0; j < levels; ++j) {
    const double d = (middle - q[j]) / h;
    sum += std::exp(-0.5 * d * d) / (h * std::sqrt(2 * std::numbers::pi) * levels);
  }
  return sum;
}

void check(Tensor& x, Tensor& grad_y, int levels, Layout layout, double tolerance) {
  const ApplyRun run(x, grad_y, levels, threads(1), layout);
  ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
  for (int64_t c = 0; c < x.shape().channels; ++c) {
    const double* q = run.quantiles.data() + c * levels;
    const auto values = x.get(c), dy = grad_y.get(c), y = run.y.get(c), dx = run.grad_x.get(c),
               rank = run.rank.get(c);
    std::vector<double> expected_dx;
    double affine[4] = {}, size[4] = {};
    for (size_t i = 0; i < values.size(); ++i) {
      const double z = run.scale[c] * values[i] + run.shift[c];
      // Rounding may carry z past a quantile that it all but equals.
      const double slack = tolerance * std::max(1.0, std::abs(z));
      const auto below = [&](double at) { return std::upper_bound(q, q + levels, at) - q; };
      const double found = (y[i] - run.out_shift[c]) / run.out_scale[c] * levels;
      const int level = static_cast<int>(std::lround(found));
      ASSERT_NEAR(found, level, 0.49);
      ASSERT_TRUE(level >= below(z - slack) && level <= below(z + slack));
      ASSERT_GE(rank[i], static_cast<double>(level) / (levels + 1) - tolerance);
      ASSERT_LE(rank[i], (level + 1.0) / (levels + 1) + tolerance);
      const double f = density_at(q, levels, level, ApplyRun::kBandwidth);
      const double dz = dy[i] * run.out_scale[c] * f;
      const double term[4] = {dz * values[i], dz, dy[i] * level / levels, dy[i]};
      for (int k = 0; k < 4; ++k) affine[k] += term[k], size[k] += std::abs(term[k]);
      expected_dx.push_back(dz * run.scale[c]);
    }
    EXPECT_LT(relative_error(dx, expected_dx), std::max(tolerance, 1e-7));
    for (int k = 0; k < 4; ++k) {
      EXPECT_NEAR(run.grad_affine[4 * c + k], affine[k], std::max(tolerance, 1e-7) * size[k]);
    }
  }
}

TEST(Apply, EqualsPlainLoops) {
  for (const Shape& shape : kShapes) {
    for (const Layout layout : kLayouts) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        SCOPED_TRACE(std::string(name(layout)) + " " + name(dtype));
        Tensor x = filled(shape, Distribution::normal, 121, dtype, layout);
        Tensor grad_y = filled(shape, Distribution::normal, 122, dtype, layout);
        check(x, grad_y, dtype == DType::bf16 ? 20 : 100, layout, precision(dtype));
      }
    }
  }
}

// Up to 127 quantiles are searched in registers, more in memory; tails of every length.
TEST(Apply, EqualsPlainLoopsForAnyNumberOfLevels) {
  for (const int levels : {2, 3, 4, 31, 32, 100, 126, 127, 128, 129, 255, 256, 1000}) {
    for (const int64_t spatial : {1, 15, 16, 17, 50}) {
      SCOPED_TRACE(levels);
      Tensor x = filled({7, 3, spatial}, Distribution::normal, 131, DType::f32, Layout::contiguous);
      Tensor grad_y =
          filled({7, 3, spatial}, Distribution::normal, 132, DType::f32, Layout::contiguous);
      check(x, grad_y, levels, Layout::contiguous, precision(DType::f32));
    }
  }
}

// Every value at a quantile, just below and just above it, in float32: no slack.
TEST(Apply, CountsAQuantileThatIsMetExactly) {
  for (const int levels : {5, 100, 127, 128, 200}) {
    std::vector<double> q, values, expected;
    for (int j = 0; j < levels; ++j) q.push_back(static_cast<float>(-3 + 6.0 * (j / 2) / levels));
    const float infinity = std::numeric_limits<float>::infinity();
    for (const double v : q) {
      for (const float z : {std::nextafter(static_cast<float>(v), -infinity), static_cast<float>(v),
                            std::nextafter(static_cast<float>(v), infinity)}) {
        values.push_back(z);
        const auto level = std::upper_bound(q.begin(), q.end(), static_cast<double>(z)) - q.begin();
        expected.push_back(static_cast<float>(static_cast<double>(level) / levels));
      }
    }
    const int64_t n = static_cast<int64_t>(values.size());
    Tensor x({n, 1, 1}, DType::f32), y({n, 1, 1}, DType::f32);
    x.set(0, values);
    QuantileApply call;
    call.levels = levels;
    call.shape = x.shape();
    call.x = x.view();
    call.y = y.view();
    call.quantiles = q.data();
    quantile_apply(call, threads(1));
    EXPECT_EQ(y.get(0), expected) << levels;
  }
}

// Quantiles evenly spaced, tied, in clusters, in a heap, without end or too far apart to be
// subtracted, and values at each of them, just below and just above it: no slack.
TEST(Apply, CountsQuantilesHoweverTheyLie) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::function<double(double)> kinds[] = {
      [](double t) { return t; },
      [](double t) { return std::floor(40 * t); },
      [](double t) { return std::floor(10 * t) + 1e-4 * t; },
      [](double) { return 0.5; },
      [](double t) { return std::pow(t, 9); },
      [&](double t) { return t < 0.1   ? -infinity
                             : t > 0.9 ? infinity
                                       : t; },
      [](double t) { return 3e38 * (t < 0.5 ? -1 : 1); },
      [](double t) { return t < 0.5 ? 0 : 1e-42; },
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int levels : {30, 100, 127, 128, 200, 255, 256}) {
      for (size_t kind = 0; kind < std::size(kinds); ++kind) {
        SCOPED_TRACE(std::to_string(levels) + " levels, kind " + std::to_string(kind));
        std::vector<double> q, values = {-infinity, infinity, 0, -1, 1e30}, expected;
        for (int j = 0; j < levels; ++j) {
          q.push_back(static_cast<float>(kinds[kind](j / (levels - 1.0))));
        }
        for (const double v : q) {
          const auto at = static_cast<float>(v), far = std::numeric_limits<float>::infinity();
          values.insert(values.end(), {std::nextafter(at, -far), at, std::nextafter(at, far)});
        }
        for (const double v : values) {
          const auto level = std::upper_bound(q.begin(), q.end(), v) - q.begin();
          const double share = static_cast<double>(level) / levels;
          expected.push_back(dtype == DType::f32 ? static_cast<float>(share) : share);
        }
        const int64_t n = static_cast<int64_t>(values.size());
        Tensor x({n, 1, 1}, dtype), y({n, 1, 1}, dtype);
        x.set(0, values);
        QuantileApply call;
        call.levels = levels;
        call.shape = x.shape();
        call.x = x.view();
        call.y = y.view();
        call.quantiles = q.data();
        quantile_apply(call, threads(1));
        EXPECT_EQ(y.get(0), expected);
      }
    }
  }
}

// Writes dx and, for each channel, the sums that affine gradients are made of.
void apply_backward(Tensor& x, Tensor& dy, const std::vector<double>& quantiles, int levels,
                    Tensor& dx, std::vector<double>& affine) {
  QuantileApplyBackward call;
  call.levels = levels;
  call.shape = x.shape();
  call.grad_y = dy.view();
  call.x = x.view();
  call.grad_x = dx.view();
  call.quantiles = quantiles.data();
  call.grad_affine = affine.data();
  quantile_apply_backward(call, threads(1));
}

TEST(Apply, RanksExtremesAndPassesNanOn) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> q = {-1, 0, 2};
  Tensor x({5, 1, 1}, DType::f64), y({5, 1, 1}, DType::f64), dy({5, 1, 1}, DType::f64),
      dx({5, 1, 1}, DType::f64);
  x.set(0, {-infinity, infinity, std::nan(""), 0, 1});
  dy.set(0, {1, 1, 1, 1, 1});
  QuantileApply call;
  call.levels = 3;
  call.shape = x.shape();
  call.x = x.view();
  call.y = y.view();
  call.quantiles = q.data();
  quantile_apply(call, threads(1));
  auto found = y.get(0);
  EXPECT_TRUE(std::isnan(found[2]));
  found[2] = 0;
  EXPECT_EQ(found, (std::vector<double>{0, 1, 0, 2.0 / 3, 2.0 / 3}));
  call.quantised = false;
  quantile_apply(call, threads(1));
  EXPECT_EQ(y.get(0)[0], 0);
  EXPECT_EQ(y.get(0)[1], 1);

  std::vector<double> affine(4);
  apply_backward(x, dy, q, 3, dx, affine);
  EXPECT_EQ(dx.get(0)[0], 0);
  EXPECT_EQ(dx.get(0)[1], 0);
  EXPECT_TRUE(std::isnan(dx.get(0)[2]));
}

// What an infinite value gives to no sum, in registers and in memory.
TEST(Apply, HasNoGradientAtInfinities) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const int levels : {3, 127, 128}) {
    std::vector<double> q, affine(8);
    for (int j = 0; j < levels; ++j) q.push_back(static_cast<float>(-1 + 3.0 * j / levels));
    q.insert(q.end(), q.begin(), q.end());
    Tensor x({21, 2, 1}, DType::f32), dy({21, 2, 1}, DType::f32), dx({21, 2, 1}, DType::f32);
    std::vector<double> values(21, 0.5);
    values[2] = infinity;
    values[19] = -infinity;
    x.set(0, values);
    values[20] = std::nan("");
    x.set(1, values);
    for (const int c : {0, 1}) dy.set(c, std::vector<double>(21, 1.0));
    apply_backward(x, dy, q, levels, dx, affine);
    for (const int c : {0, 1}) {
      const std::vector<double> found = dx.get(c);
      EXPECT_EQ(found[2], 0);
      EXPECT_EQ(found[19], 0);
      EXPECT_GT(found[0], 0);
    }
    EXPECT_TRUE(std::isnan(dx.get(1)[20]) && std::isnan(affine[4]) && std::isnan(affine[5]));
    EXPECT_NEAR(affine[1], 19 * dx.get(0)[0], 1e-5);
    EXPECT_NEAR(affine[0], 0.5 * affine[1], 1e-5);
    EXPECT_EQ(affine[3], 21);
  }
}

// Beyond the last of as many quantiles as a table holds, where three of them share a bucket.
TEST(Apply, CountsAnInfiniteValueAmongAllQuantiles) {
  for (const int levels : {127, 255}) {
    std::vector<double> q, affine(4);
    for (int j = 0; j < levels; ++j) q.push_back(j < 3 ? -1 : 1.0 * j / levels);
    constexpr int64_t kValues = 80;
    Tensor x({kValues, 1, 1}, DType::f64), dy({kValues, 1, 1}, DType::f64),
        dx({kValues, 1, 1}, DType::f64);
    x.set(0, std::vector<double>(kValues, std::numeric_limits<double>::infinity()));
    dy.set(0, std::vector<double>(kValues, 1.0));
    apply_backward(x, dy, q, levels, dx, affine);
    EXPECT_EQ(affine[2], kValues);  // the sum of level / levels
  }
}

// In float32, where levels are looked up in registers; runs of any length; y in x's own place.
TEST(Apply, RanksExtremesInPlace) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double extremes[] = {-infinity, infinity, std::nan(""), 0.5, -2, 1};
  for (const int levels : {3, 100, 127, 128}) {
    for (const int64_t spatial : {1, 15, 16, 17, 33, 300}) {
      SCOPED_TRACE(spatial);
      std::vector<double> q, values, expected;
      for (int j = 0; j < levels; ++j) q.push_back(static_cast<float>(-1 + 3.0 * j / levels));
      for (int64_t i = 0; i < 5 * spatial; ++i) {
        const double v = values.emplace_back(extremes[i % std::size(extremes)]);
        const auto level = std::upper_bound(q.begin(), q.end(), v) - q.begin();
        expected.push_back(static_cast<float>(static_cast<double>(level) / levels));
      }
      q.insert(q.end(), q.begin(), q.end());
      Tensor x({5, 2, spatial}, DType::f32);
      for (const int c : {0, 1}) x.set(c, values);
      QuantileApply call;
      call.levels = levels;
      call.shape = x.shape();
      call.x = call.y = x.view();
      call.quantiles = q.data();
      quantile_apply(call, threads(1));
      ASSERT_TRUE(x.intact());
      for (const int c : {0, 1}) {
        const auto found = x.get(c);
        for (size_t i = 0; i < found.size(); ++i) {
          if (std::isnan(values[i])) {
            EXPECT_TRUE(std::isnan(found[i]));
          } else {
            EXPECT_EQ(found[i], expected[i]) << values[i];
          }
        }
      }
    }
  }
}

TEST(Apply, UnquantisedGrowsStrictlyWithinTheRange) {
  const std::vector<double> q = {-1, 0, 0, 2};
  std::vector<double> values;
  for (double v = -4; v < 6; v += 0.125) values.push_back(v);
  const int64_t n = static_cast<int64_t>(values.size());
  Tensor x({n, 1, 1}, DType::f64), y({n, 1, 1}, DType::f64);
  x.set(0, values);
  QuantileApply call;
  call.levels = 4;
  call.quantised = false;
  call.shape = x.shape();
  call.x = x.view();
  call.y = y.view();
  call.quantiles = q.data();
  quantile_apply(call, threads(1));
  const auto found = y.get(0);
  for (int64_t i = 1; i < n; ++i) EXPECT_LT(found[i - 1], found[i]) << values[i];
  EXPECT_GT(found.front(), 0);
  EXPECT_LT(found.back(), 1);
}

}  // namespace
}  // namespace qact::core::testing
