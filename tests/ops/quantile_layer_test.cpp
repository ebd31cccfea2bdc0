// The fused layer against the oracle, through torch, over shapes, types and layouts.
#include "qact/ops/quantile_layer.h"

#include <gtest/gtest.h>

#include "qact/core/reference.h"
#include "qact/ops/context.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

namespace reference = core::reference;

struct Layer {
  torch::Tensor x, weight_in, bias_in, weight_out, bias_out, y, stats, context;

  explicit Layer(const torch::Tensor& input) : x(input.detach().requires_grad_()) {
    const int64_t channels = x.size(1);
    const auto vector = [&](double first, double step) {
      return (first + step * torch::arange(channels)).to(torch::kFloat).requires_grad_();
    };
    weight_in = vector(1.25, -0.25), bias_in = vector(-0.3, 0.2);
    weight_out = vector(0.75, 0.5), bias_out = vector(0.1, -0.4);
    std::tie(y, stats, context) = ops::quantile_layer(x, weight_in, bias_in, weight_out, bias_out,
                                                      1e-5, 100, 100.0, 0.5, 0.5, "auto", true);
  }

  reference::LayerParameters parameters(int64_t c) const {
    reference::LayerParameters out;
    out.weight_in = weight_in[c].item<double>(), out.bias_in = bias_in[c].item<double>();
    out.weight_out = weight_out[c].item<double>(), out.bias_out = bias_out[c].item<double>();
    return out;
  }
};

void expect_oracle(const Layer& layer, const torch::Tensor& grad, const std::string& what) {
  const bool narrow =
      layer.x.scalar_type() == torch::kBFloat16 || layer.x.scalar_type() == torch::kHalf;
  for (int64_t c = 0; c < layer.x.size(1); ++c) {
    const auto values = channel(layer.x, c), found = channel(layer.y, c);
    const auto parameters = layer.parameters(c);
    const auto expected = reference::layer(values, parameters);
    EXPECT_NEAR(layer.stats[c][0].item<double>(), expected.mean_in, 1e-5) << what;
    EXPECT_NEAR(layer.stats[c][1].item<double>(), expected.var_in, 1e-4) << what;
    EXPECT_NEAR(layer.stats[c][2].item<double>(), expected.mean_out, 2e-3) << what;
    EXPECT_NEAR(layer.stats[c][3].item<double>(), expected.var_out, 2e-3) << what;
    const double a_level =
        std::abs(parameters.weight_out) * 0.01 / std::sqrt(expected.var_out + 1e-5);
    for (size_t i = 0; i < values.size(); ++i) {
      const double rounding = narrow ? 0.02 * std::abs(expected.y[i]) + 0.01 : 1e-4;
      ASSERT_LE(std::abs(found[i] - expected.y[i]), 2.5 * a_level + rounding) << what;
    }
    const auto gradient = reference::layer_gradient(values, channel(grad, c), parameters);
    EXPECT_LE(relative_error(channel(layer.x.grad(), c), gradient.x), 0.05) << what;
    // Relative to the size that such sums of random gradients have: f is about 0.4, and one
    // level about 1/100 of what the outer norm scales the activation by.
    const double outer = 0.05 * std::sqrt(static_cast<double>(values.size()));
    const double inner = outer * 0.4 * 100 * a_level;
    const std::tuple<torch::Tensor, double, double> affine[] = {
        {layer.weight_in, gradient.weight_in, inner},
        {layer.bias_in, gradient.bias_in, inner},
        {layer.weight_out, gradient.weight_out, outer},
        {layer.bias_out, gradient.bias_out, outer}};
    for (const auto& [parameter, wanted, allowed] : affine) {
      EXPECT_NEAR(parameter.grad()[c].item<double>(), wanted, allowed) << what;
    }
  }
}

TEST(QuantileLayerOp, AgreesWithTheOracleInEveryLayout) {
  torch::manual_seed(1);
  for (const auto& shape : {std::vector<int64_t>{6, 3, 7},
                            {40, 2},
                            {5, 4, 6, 10},
                            {9, 3, 11, 8},
                            {3, 2, 2, 3, 5},
                            {700, 2}}) {
    const torch::Tensor values = torch::randn(shape, torch::kDouble) * 2 + 0.5;
    for (const auto type : types()) {
      for (const Layout& layout : layouts()) {
        Layer layer(layout.of(values.to(type)));
        const torch::Tensor grad = torch::randn(shape, torch::kDouble).to(type);
        layer.y.backward(grad);
        const std::string what = describe(layer.x, layout);
        EXPECT_EQ(layer.y.strides(), torch::empty_like(layer.x).strides()) << what;
        EXPECT_EQ(layer.y.scalar_type(), type) << what;
        EXPECT_EQ(layer.weight_in.grad().scalar_type(), torch::kFloat) << what;
        expect_oracle(layer, grad, what);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(QuantileLayerOp, TheContextIsThatOfTheNormalisedValues) {
  torch::manual_seed(2);
  const Layer layer(torch::randn({30, 3, 5, 5}) * 3 + 1);
  const torch::Tensor scale =
      layer.weight_in * torch::rsqrt(layer.stats.select(1, 1) + 1e-5).to(torch::kFloat);
  const torch::Tensor shift = layer.bias_in - layer.stats.select(1, 0).to(torch::kFloat) * scale;
  const torch::Tensor expected = ops::context_build(layer.x.detach(), scale, shift);
  EXPECT_EQ(layer.context.sum().item<int64_t>(), expected.sum().item<int64_t>());
  // It is counted from the layer's own histogram: a value near an edge may cross it.
  EXPECT_LE((layer.context - expected).abs().sum().item<int64_t>(),
            expected.sum().item<int64_t>() / 10);
  EXPECT_LE((ops::context_quantiles(layer.context, 20) - ops::context_quantiles(expected, 20))
                .abs()
                .max()
                .item<double>(),
            0.03);
}

TEST(QuantileLayerOp, WithoutAffineItIsTheSameAsOnesAndZeros) {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({16, 4, 6, 6});
  const torch::Tensor ones = torch::ones({4}), zeros = torch::zeros({4});
  const auto plain = std::get<0>(ops::quantile_layer(x, {}, {}, {}, {}));
  EXPECT_TRUE(torch::equal(plain, std::get<0>(ops::quantile_layer(x, ones, zeros, ones, zeros))));
}

TEST(QuantileLayerOp, SavesFiveBytesPerElementAndASmallTable) {
  const torch::Tensor x = torch::randn({64, 4, 16, 16});
  const auto [y, level, density, stats, context] = ops::quantile_layer_forward(
      x, {}, {}, {}, {}, 1e-5, 100, 100.0, 0.5, 0.5, "auto", false, true);
  EXPECT_EQ(x.nbytes() + level.nbytes(), 5 * static_cast<size_t>(x.numel()));
  EXPECT_LE((density.nbytes() + stats.nbytes()) / x.size(1), 1152u);
  EXPECT_EQ(context.numel(), 0);
}

TEST(QuantileLayerOp, ChangesNoBitWithTheNumberOfThreads) {
  torch::manual_seed(4);
  const torch::Tensor values = torch::randn({20, 9, 13, 7}), grad = torch::randn_like(values);
  const int before = torch::get_num_threads();
  torch::Tensor y, grad_x, grad_weight, context;
  for (const int threads : {1, 2, 7}) {
    torch::set_num_threads(threads);
    for (const Layout& layout : layouts()) {
      Layer layer(layout.of(values));
      layer.y.backward(grad);
      if (!y.defined()) {
        y = layer.y, grad_x = layer.x.grad(), grad_weight = layer.weight_in.grad();
        context = layer.context;
      }
      EXPECT_TRUE(torch::equal(layer.y, y)) << threads << " " << layout.name;
      EXPECT_TRUE(torch::equal(layer.x.grad(), grad_x)) << threads << " " << layout.name;
      EXPECT_TRUE(torch::equal(layer.weight_in.grad(), grad_weight)) << threads;
      EXPECT_TRUE(torch::equal(layer.context, context)) << threads;
    }
  }
  torch::set_num_threads(before);
}

}  // namespace
}  // namespace qact::tests
