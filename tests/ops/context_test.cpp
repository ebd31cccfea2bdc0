// Kept contexts and values seen through them.
#include "qact/ops/context.h"

#include <gtest/gtest.h>

#include "qact/core/context.h"
#include "qact/core/reference.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_apply.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

namespace reference = core::reference;

TEST(ContextOps, BuildCountsEveryValueInEveryLayout) {
  torch::manual_seed(1);
  const torch::Tensor scale = torch::tensor({2.0f, -1.0f, 0.5f}),
                      shift = torch::tensor({0.f, 1.f, -1.f});
  for (const auto type : types()) {
    const torch::Tensor values = torch::randn({4, 3, 5, 6}).to(type);
    torch::Tensor expected = torch::zeros({3, core::kContextBins}, torch::kLong);
    for (int64_t c = 0; c < 3; ++c) {
      for (const double v : channel(values, c)) {
        const float z = static_cast<float>(v) * scale[c].item<float>() + shift[c].item<float>();
        expected[c][core::context_bin(z)] += core::kContextUnit;
      }
    }
    for (const Layout& layout : layouts()) {
      const torch::Tensor found = ops::context_build(layout.of(values), scale, shift);
      EXPECT_TRUE(torch::equal(found, expected)) << describe(values, layout);
    }
  }
}

TEST(ContextOps, BlendGivesEachItsWeight) {
  torch::manual_seed(2);
  const torch::Tensor a = ops::context_build(torch::randn({100, 40}));
  const torch::Tensor b = ops::context_build(torch::randn({300, 40}) + 3);
  const torch::Tensor blended = ops::context_blend(a, 30, b, 10);
  EXPECT_TRUE((blended.sum(1) == 40 * core::kContextUnit).all().item<bool>());
  const torch::Tensor expected = a.to(torch::kDouble) * 0.3 + b.to(torch::kDouble) / 30;
  EXPECT_LE((blended.to(torch::kDouble) - expected).abs().max().item<double>(), 2);
  EXPECT_TRUE(torch::equal(ops::context_blend(a, 100, b, 0), a));
}

TEST(ContextOps, QuantilesAreNearThoseOfTheValues) {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({20000, 2}, torch::kDouble);
  const torch::Tensor found = ops::context_quantiles(ops::context_build(x), 20);
  EXPECT_LE((found - ops::quantiles(x, 20)).abs().max().item<double>(), 0.02);
}

TEST(QuantileApply, CountsTheQuantilesBelow) {
  torch::manual_seed(4);
  const torch::Tensor context = torch::randn({500, 3}, torch::kDouble);
  const torch::Tensor quantiles = ops::quantiles(context);
  const torch::Tensor scale = torch::tensor({2.0, -1.0, 0.5}, torch::kDouble);
  const torch::Tensor shift = torch::tensor({0.0, 1.0, -1.0}, torch::kDouble);
  const torch::Tensor out_scale = shift + 2, out_shift = scale;
  for (const auto type : types()) {
    const torch::Tensor values = torch::randn({2, 3, 4, 5}).to(type);
    const bool narrow = type == torch::kBFloat16 || type == torch::kHalf;
    for (const Layout& layout : layouts()) {
      const torch::Tensor y =
          ops::quantile_apply(layout.of(values), quantiles, scale, shift, out_scale, out_shift);
      for (int64_t c = 0; c < 3; ++c) {
        const auto in = channel(values, c), found = channel(y, c);
        const auto* q = quantiles.data_ptr<double>() + c * 100;
        for (size_t i = 0; i < in.size(); ++i) {
          const double z = in[i] * scale[c].item<double>() + shift[c].item<double>();
          const double expected =
              reference::level(z, {q, q + 100}) / 100.0 * out_scale[c].item<double>() +
              out_shift[c].item<double>();
          EXPECT_NEAR(found[i], expected, narrow ? 0.02 : 1e-6) << describe(values, layout);
        }
      }
    }
  }
}

// The oracle's density of the context that the quantiles came from.
TEST(QuantileApply, GradientIsTheDensityOfTheContext) {
  torch::manual_seed(5);
  const torch::Tensor context = torch::randn({2000, 1}, torch::kDouble);
  const torch::Tensor x = torch::randn({400, 1}, torch::kDouble).requires_grad_();
  const torch::Tensor scale = torch::full({1}, 1.5).requires_grad_();
  const torch::Tensor shift = torch::full({1}, 0.25).requires_grad_();
  const torch::Tensor out_scale = torch::full({1}, 3.0).requires_grad_();
  const torch::Tensor out_shift = torch::full({1}, -1.0).requires_grad_();
  const torch::Tensor y =
      ops::quantile_apply(x, ops::quantiles(context), scale, shift, out_scale, out_shift);
  const torch::Tensor grad = torch::randn_like(y);
  y.backward(grad);

  const reference::Neuron neuron(channel(context, 0), {});
  const auto in = channel(x, 0), dy = channel(grad, 0), out = channel(y, 0);
  std::vector<double> expected;
  double d_scale = 0, d_shift = 0, d_out_scale = 0, d_out_shift = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double dz = dy[i] * 3.0 * reference::density(neuron, 1.5 * in[i] + 0.25, 0.5);
    expected.push_back(1.5 * dz);
    d_scale += dz * in[i], d_shift += dz;
    d_out_scale += dy[i] * (out[i] + 1.0) / 3.0, d_out_shift += dy[i];
  }
  // The density is that of 100 quantiles, which spread the 2,000 values: off by 3.6% here.
  EXPECT_LE(relative_error(channel(x.grad(), 0), expected), 0.045);
  const double allowed = 0.045 * std::sqrt(400.0);
  EXPECT_NEAR(scale.grad().item<double>(), d_scale, allowed);
  EXPECT_NEAR(shift.grad().item<double>(), d_shift, allowed);
  EXPECT_NEAR(out_scale.grad().item<double>(), d_out_scale, 1e-4);
  EXPECT_NEAR(out_shift.grad().item<double>(), d_out_shift, 1e-4);
}

TEST(QuantileApply, UnquantisedItGrowsWhereLevelsTie) {
  const torch::Tensor quantiles = ops::context_quantiles(ops::context_standard_normal(1), 10);
  const torch::Tensor x = torch::linspace(-8, 8, 1001).unsqueeze(1);
  const torch::Tensor rank = ops::quantile_apply(x, quantiles, {}, {}, {}, {}, 0.5, false);
  const torch::Tensor level = ops::quantile_apply(x, quantiles);
  EXPECT_TRUE((rank.diff(1, 0) > 0).all().item<bool>());
  EXPECT_TRUE(torch::equal((rank * 11 + 1e-5).floor().clamp_max(10), (level * 10).round()));
}

}  // namespace
}  // namespace qact::tests
