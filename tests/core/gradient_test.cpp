// The plain operator's gradient is the derivative of the smoothed distribution function
// F_h(x) = sum_i w_i Phi((x - z_i) / h), the context held fixed.
#include <gtest/gtest.h>

#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

std::vector<double> derivative(const std::vector<double>& x, const Quantile& quantile) {
  const reference::Neuron neuron(x, parameters(quantile));
  const double h = quantile.bandwidth, step = 4e-4 * h;
  std::vector<double> out;
  for (const double v : x) {
    out.push_back((reference::smoothed_cumulative(neuron, v + step, h) -
                   reference::smoothed_cumulative(neuron, v - step, h)) /
                  (2 * step));
  }
  return out;
}

TEST(Gradient, OfExactInDouble) {
  for (const Distribution distribution : kDistributions) {
    for (const int64_t n : {1, 2, 33, 700}) {
      for (const double bandwidth : {0.05, 0.5, 3.0}) {
        Quantile quantile = with(Algorithm::exact);
        quantile.bandwidth = bandwidth;
        Tensor x = filled({n, 1, 1}, distribution, 71, DType::f64);
        const auto found = ActivationRun(x, quantile).density.get(0);
        ASSERT_LT(relative_error(found, derivative(x.get(0), quantile)), 1e-5)
            << name(distribution) << ", n = " << n << ", h = " << bandwidth;
      }
    }
  }
}

TEST(Gradient, OfBinned) {
  for (const Distribution distribution : kDistributions) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      for (const int64_t n : {1, 2, 33, 1500}) {
        Tensor x = filled({n, 1, 1}, distribution, 73, dtype);
        const auto found = ActivationRun(x, with(Algorithm::binned)).density.get(0);
        ASSERT_LT(relative_error(found, derivative(x.get(0), {})), 0.02)
            << name(distribution) << ", n = " << n << ", " << name(dtype);
      }
    }
  }
}

TEST(Gradient, OfBinnedAtOtherBandwidths) {
  for (const Distribution distribution : kDistributions) {
    for (const double bandwidth : {0.02, 0.2, 5.0}) {
      Quantile quantile = with(Algorithm::binned);
      quantile.bandwidth = bandwidth;
      Tensor x = filled({700, 1, 1}, distribution, 75);
      const auto found = ActivationRun(x, quantile).density.get(0);
      ASSERT_LT(relative_error(found, derivative(x.get(0), quantile)), 0.02)
          << name(distribution) << ", h = " << bandwidth;
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
