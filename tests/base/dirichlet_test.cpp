#include "qact/base/dirichlet.h"

#include <gtest/gtest.h>

#include <numeric>

namespace qact::base {
namespace {

// Mean and variance of Gamma(a, 1) are a; the third central moment is 2a.
TEST(Dirichlet, GammaHasItsMoments) {
  for (const double shape : {0.1, 0.5, 1.0}) {
    Random random(1, uint64_t{2});
    constexpr int kDraws = 200'000;
    double sum = 0, squares = 0, cubes = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double d = gamma_variate(shape, random) - shape;
      sum += d, squares += d * d, cubes += d * d * d;
    }
    EXPECT_NEAR(sum / kDraws, 0, 0.02 * shape + 0.002) << shape;
    EXPECT_NEAR(squares / kDraws, shape, 0.05 * shape) << shape;
    EXPECT_NEAR(cubes / kDraws, 2 * shape, 0.2 * shape) << shape;
  }
}

// Of a share: mean 1/n, variance (1/n)(1 - 1/n) / (n a + 1).
TEST(Dirichlet, SharesAddUpAndHaveTheirMoments) {
  Random random(1, uint64_t{3});
  constexpr int kDraws = 50'000;
  constexpr size_t kCount = 10;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<double> shares = dirichlet(0.1, kCount, random);
    ASSERT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
    sum += shares[3];
    squares += (shares[3] - 0.1) * (shares[3] - 0.1);
  }
  EXPECT_NEAR(sum / kDraws, 0.1, 0.003);
  EXPECT_NEAR(squares / kDraws, 0.1 * 0.9 / 2, 0.002);
}

}  // namespace
}  // namespace qact::base
