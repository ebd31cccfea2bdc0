// Only NaN and infinities give NaN: channels of huge values, whose squares no float can hold, and
// nearly constant ones that start with an outlier, against the oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

void expect_oracle(Tensor& x, const Quantile& quantile = {}) {
  const Shape& shape = x.shape();
  const DType dtype = x.view().dtype;
  Tensor grad_y = filled(shape, Distribution::normal, 152, dtype);
  const Affines affines(shape.channels);
  const LayerRun run(x, grad_y, affines, quantile, threads(2));
  for (int64_t c = 0; c < shape.channels; ++c) {
    SCOPED_TRACE("channel " + std::to_string(c));
    const LayerCase given{x.get(c), grad_y.get(c), affines.of(c), dtype,
                          quantile.exact_for(shape.context_size())};
    expect_levels(given, run.found(c));
    expect_norms(given, run.found(c));
    expect_gradient(given, run.found(c));
  }
}

Tensor scaled(const Shape& shape, Distribution distribution, double scale, DType dtype) {
  Tensor out(shape, dtype);
  for (int64_t c = 0; c < shape.channels; ++c) {
    std::vector<double> values = draw(distribution, shape.context_size(), 151 + c);
    for (double& v : values) v *= scale;
    out.set(c, values);
  }
  return out;
}

TEST(Finite, HugeChannelsAreNotNan) {
  for (const double scale : {1e9, 1e17, 1e19, 1e25, 1e32}) {
    for (const Distribution distribution :
         {Distribution::normal, Distribution::ties, Distribution::positive}) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
        for (const Shape& shape : {Shape{40, 3, 4}, Shape{30, 2, 20}, Shape{2, 2, 300}}) {
          SCOPED_TRACE(std::to_string(scale) + " " + name(distribution) + " " + name(dtype) + " " +
                       std::to_string(shape.context_size()));
          Tensor x = scaled(shape, distribution, scale, dtype);
          expect_oracle(x);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Bins would be narrower than what float can tell apart.
TEST(Finite, TinyChannelsKeepTheirDensities) {
  for (const double scale : {1e-30, 1e-37, 1e-40, 1e-100, 1e-150}) {
    for (const Shape& shape : {Shape{40, 2, 4}, Shape{30, 2, 20}}) {
      SCOPED_TRACE(std::to_string(std::log10(scale)) + " " + std::to_string(shape.context_size()));
      Tensor x = scaled(shape, Distribution::normal, scale, DType::f64);
      expect_oracle(x);
      if (HasFailure()) return;
    }
  }
}

// Where gradients themselves are all but beyond float32, they have fewer digits.
TEST(Finite, UpToTheLargestFloat) {
  for (const Shape& shape : {Shape{40, 2, 4}, Shape{2, 2, 400}}) {
    for (const double largest : {1e36, 1.6e38}) {
      Tensor x = scaled(shape, Distribution::uniform, largest / 3, DType::f32);
      Tensor grad_y = filled(shape, Distribution::normal, 153);
      const Affines affines(2);
      const LayerRun run(x, grad_y, affines, {}, threads(1));
      for (int64_t c = 0; c < 2; ++c) {
        const LayerCase given{x.get(c), grad_y.get(c), affines.of(c), DType::f32,
                              Quantile{}.exact_for(shape.context_size())};
        expect_levels(given, run.found(c));
        expect_norms(given, run.found(c));
        for (const double v : run.grad_x.get(c)) ASSERT_TRUE(std::isfinite(v));
      }
    }
  }
}

TEST(Finite, DoublesUpToWhereTheVarianceOverflows) {
  for (const Shape& shape : {Shape{40, 2, 4}, Shape{2, 2, 300}}) {
    Tensor x = scaled(shape, Distribution::normal, 1e150, DType::f64);
    expect_oracle(x);
  }
}

// Beyond its own type's largest number, a channel's range is infinite.
TEST(Finite, EndsWhereTheRangeOverflows) {
  Tensor x = scaled({300, 2, 1}, Distribution::normal, 1, DType::f32);
  std::vector<double> values = x.get(1);
  values[3] = 3e38, values[7] = -3e38;
  x.set(1, values);
  Tensor grad_y = filled(x.shape(), Distribution::normal, 154);
  const LayerRun run(x, grad_y, Affines(2), {}, threads(1));
  for (const double v : run.y.get(0)) ASSERT_TRUE(std::isfinite(v));
  for (const double v : run.y.get(1)) ASSERT_TRUE(std::isnan(v));
  for (const double v : run.grad_x.get(1)) ASSERT_TRUE(std::isnan(v));
  // The plain operator, which takes no moments, ranks it.
  const ActivationRun plain(x, {});
  const std::vector<int> expected = oracle_levels(x.get(1), {});
  for (int64_t i = 0; i < 300; ++i) ASSERT_EQ(to_level(plain.y.get(1)[i], 100), expected[i]);
}

// Sums about the first value, an outlier, have hardly a digit of the variance.
TEST(Finite, NearlyConstantChannelsKeepTheirVariance) {
  for (const double outlier : {1e3, -1e6}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const Shape& shape : {Shape{3, 2, 1000}, Shape{300, 3, 10}}) {
        SCOPED_TRACE(std::to_string(outlier) + " " + name(dtype));
        Tensor x = scaled(shape, Distribution::normal, 1e-3, dtype);
        for (int64_t c = 0; c < shape.channels; ++c) {
          std::vector<double> values = x.get(c);
          values[0] = outlier;
          x.set(c, values);
        }
        Tensor grad_y = filled(shape, Distribution::normal, 155, dtype);
        const Affines affines(shape.channels);
        const LayerRun run(x, grad_y, affines, {}, threads(2));
        for (int64_t c = 0; c < shape.channels; ++c) {
          const LayerCase given{x.get(c), grad_y.get(c), affines.of(c), dtype, false};
          expect_norms(given, run.found(c));
        }
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
