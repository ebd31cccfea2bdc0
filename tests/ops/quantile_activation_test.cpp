// The plain operator against the oracle, through torch, over shapes, types and layouts.
#include "qact/ops/quantile_activation.h"

#include <gtest/gtest.h>

#include "qact/core/reference.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

namespace reference = core::reference;

int levels_off(double y, int expected) {
  return std::abs(static_cast<int>(std::lround(y * 100)) - expected);
}

bool near_quantile(double x, const std::vector<double>& quantiles) {
  for (const double q : quantiles) {
    if (std::abs(x - q) < 1e-6) return true;
  }
  return false;
}

void expect_oracle(const torch::Tensor& x, const torch::Tensor& grad, const torch::Tensor& y,
                   const torch::Tensor& grad_x, const std::string& what) {
  const bool exact = x.numel() / x.size(1) <= core::kExactLimit;
  const bool narrow = x.scalar_type() == torch::kBFloat16 || x.scalar_type() == torch::kHalf;
  for (int64_t c = 0; c < x.size(1); ++c) {
    const auto values = channel(x, c), found = channel(y, c), grads = channel(grad, c);
    const reference::Neuron neuron(values, {});
    const auto quantiles = reference::quantiles(neuron, 100);
    std::vector<double> expected;
    double far = 0;  // more than the algorithm allows nearly everywhere
    for (size_t i = 0; i < values.size(); ++i) {
      expected.push_back(grads[i] * reference::density(neuron, values[i], 0.5));
      const int off = levels_off(found[i], reference::level(values[i], quantiles));
      far += exact ? off > 0 && !near_quantile(values[i], quantiles) : off > 1;
      ASSERT_LE(off, exact ? 1 : 2) << what << " value " << values[i];
    }
    EXPECT_LE(far, exact ? 0 : 0.001 * static_cast<double>(values.size())) << what;
    const double allowed = !exact || narrow ? 0.02 : x.scalar_type() == torch::kFloat ? 1e-4 : 1e-5;
    EXPECT_LE(relative_error(channel(grad_x, c), expected), allowed) << what;
  }
}

TEST(QuantileActivationOp, EqualsTheOracleInEveryLayout) {
  torch::manual_seed(1);
  for (const auto& shape : shapes()) {
    const torch::Tensor values = torch::randn(shape, torch::kDouble) * 2;
    for (const auto type : types()) {
      for (const Layout& layout : layouts()) {
        const torch::Tensor x = layout.of(values.to(type)).detach().requires_grad_();
        const torch::Tensor grad = torch::randn(shape, torch::kDouble).to(type);
        const torch::Tensor y = ops::quantile_activation(x);
        y.backward(grad);
        const std::string what = describe(x, layout);
        EXPECT_EQ(y.strides(), torch::empty_like(x).strides()) << what;
        EXPECT_EQ(y.scalar_type(), type) << what;
        expect_oracle(x, grad, y, x.grad(), what);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(QuantileActivationOp, GradientsMayHaveAnotherLayout) {
  torch::manual_seed(2);
  const torch::Tensor values = torch::randn({2, 3, 4, 5}), grad = torch::randn({2, 3, 4, 5});
  torch::Tensor expected;
  for (const Layout& layout : layouts()) {
    const torch::Tensor x = values.clone().requires_grad_();
    ops::quantile_activation(x).backward(layout.of(grad));
    if (!expected.defined()) expected = x.grad();
    EXPECT_TRUE(torch::equal(x.grad(), expected)) << layout.name;
  }
}

TEST(QuantileActivationOp, FurtherArguments) {
  constexpr ops::QuantileOptions kOptions = {20, 50.0, 0.9, 0.3, "exact"};
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({200, 2}, torch::kDouble).requires_grad_();
  const torch::Tensor exact = ops::quantile_activation(x, {.quantile = kOptions});
  const reference::Parameters parameters{20, 50.0, 0.9, 0.3};
  const auto values = channel(x, 0), found = channel(exact, 0);
  const reference::Neuron neuron(values, parameters);
  const auto quantiles = reference::quantiles(neuron, 20);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::lround(found[i] * 20), reference::level(values[i], quantiles));
  }

  // The rank agrees with its level and tells apart what ties there.
  const torch::Tensor rank =
      ops::quantile_activation(x, {.quantile = kOptions, .quantised = false});
  EXPECT_TRUE(torch::equal((rank * 21 + 1e-9).floor().clamp_max(20), (exact * 20).round()));
  EXPECT_EQ(std::get<0>(torch::_unique2(rank.select(1, 0))).numel(), 200);

  // The sampled density is repeatable, depends on its seed and estimates the same thing.
  const auto gradient = [&](int64_t samples, int64_t seed) {
    const torch::Tensor y = ops::quantile_activation(
        x, {.quantile = kOptions, .density_samples = samples, .seed = seed});
    return torch::autograd::grad({y.sum()}, {x})[0];
  };
  EXPECT_TRUE(torch::equal(gradient(1000, 4), gradient(1000, 4)));
  EXPECT_FALSE(torch::equal(gradient(1000, 4), gradient(1000, 5)));
  EXPECT_LT((gradient(1000, 4) - gradient(0, 0)).norm().item<double>(),
            0.2 * gradient(0, 0).norm().item<double>());
}

TEST(QuantileActivationOp, QuantilesAreTheOracles) {
  torch::manual_seed(4);
  const torch::Tensor x = torch::randn({50, 3, 4}, torch::kDouble);
  const torch::Tensor found = ops::quantiles(x, 10, 100.0, 0.7);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{3, 10}));
  for (int64_t c = 0; c < 3; ++c) {
    const auto expected =
        reference::quantiles(reference::Neuron(channel(x, c), {10, 100.0, 0.7, 0.5}), 10);
    for (int j = 0; j < 10; ++j) EXPECT_NEAR(found[c][j].item<double>(), expected[j], 1e-12);
  }
}

TEST(QuantileActivationOp, InfinityGetsNoGradientAndNaNStaysAlone) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const torch::Tensor x =
      torch::tensor({-inf, -1.0, nan, 2.0, inf}, torch::kDouble).unsqueeze(1).requires_grad_();
  const torch::Tensor y = ops::quantile_activation(x);
  torch::Tensor grad = torch::ones_like(y);
  grad[0][0] = inf;
  y.backward(grad);
  EXPECT_TRUE(torch::isnan(y[2]).item<bool>());
  EXPECT_EQ(x.grad()[0].item<double>(), 0);
  EXPECT_EQ(x.grad()[4].item<double>(), 0);
  EXPECT_GT(x.grad()[1].item<double>(), 0);
  EXPECT_FALSE(torch::isnan(y[1]).item<bool>());
}

}  // namespace
}  // namespace qact::tests
