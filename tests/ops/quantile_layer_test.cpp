// The fused layer against the oracle, through torch, over shapes, types and layouts.
#include <gtest/gtest.h>

#include "qact/core/quantile.h"
#include "qact/core/reference.h"
#include "qact/ops/context.h"
#include "qact/ops/quantile_layer_impl.h"
#include "tests/core/layer_check.h"
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
    std::tie(y, stats, context) =
        ops::quantile_layer(x, {weight_in, bias_in, weight_out, bias_out}, {.track = true});
  }

  reference::LayerParameters parameters(int64_t c) const {
    reference::LayerParameters out;
    out.weight_in = weight_in[c].item<double>(), out.bias_in = bias_in[c].item<double>();
    out.weight_out = weight_out[c].item<double>(), out.bias_out = bias_out[c].item<double>();
    return out;
  }
};

core::DType dtype_of(torch::ScalarType type) {
  return type == torch::kDouble     ? core::DType::f64
         : type == torch::kFloat    ? core::DType::f32
         : type == torch::kBFloat16 ? core::DType::bf16
                                    : core::DType::f16;
}

// The levels follow from the output, which is theirs times a scale and more.
core::testing::LayerFound found_of(const Layer& layer, int64_t c) {
  const auto number = [&](const torch::Tensor& t) { return t[c].item<double>(); };
  core::testing::LayerFound found;
  found.y = channel(layer.y, c);
  found.grad_x = channel(layer.x.grad(), c);
  found.mean_in = number(layer.stats.select(1, 0)), found.var_in = number(layer.stats.select(1, 1));
  found.mean_out = number(layer.stats.select(1, 2));
  found.var_out = number(layer.stats.select(1, 3));
  found.weight_in = number(layer.weight_in.grad()), found.bias_in = number(layer.bias_in.grad());
  found.weight_out = number(layer.weight_out.grad());
  found.bias_out = number(layer.bias_out.grad());
  const double scale = number(layer.weight_out) / std::sqrt(found.var_out + 1e-5);
  for (const double y : found.y) {
    const double u = (y - number(layer.bias_out)) / scale + found.mean_out;
    found.level.push_back(static_cast<int>(std::lround(100 * u)));
  }
  return found;
}

void expect_oracle(const Layer& layer, const torch::Tensor& grad, const std::string& what) {
  SCOPED_TRACE(what);
  for (int64_t c = 0; c < layer.x.size(1); ++c) {
    const std::vector<double> values = channel(layer.x, c);
    const core::testing::LayerCase given{values,
                                         channel(grad, c),
                                         layer.parameters(c),
                                         dtype_of(layer.x.scalar_type()),
                                         values.size() <= core::kExactLimit,
                                         core::DType::f32};
    const core::testing::LayerFound found = found_of(layer, c);
    core::testing::expect_levels(given, found);
    core::testing::expect_norms(given, found);
    core::testing::expect_gradient(given, found);
    if (::testing::Test::HasFailure()) return;
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
        if (::testing::Test::HasFailure()) return;
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
  const auto plain = std::get<0>(ops::quantile_layer(x));
  EXPECT_TRUE(torch::equal(plain, std::get<0>(ops::quantile_layer(x, {ones, zeros, ones, zeros}))));
}

TEST(QuantileLayerOp, SavesOneBytePerElementAndASmallTable) {
  const torch::Tensor x = torch::randn({64, 4, 16, 16});
  const auto [y, code, table, stats, context] =
      ops::quantile_layer_forward(x, {}, {}, /*keep=*/true);
  EXPECT_EQ(code.nbytes(), static_cast<size_t>(x.numel()));
  EXPECT_LE((table.nbytes() + stats.nbytes()) / x.size(1), 2048u);
  EXPECT_EQ(context.numel(), 0);
  EXPECT_FALSE(ops::kept_sizes(x, {}).x);
}

// Never more than x and one byte a value, in any scope and type.
TEST(QuantileLayerOp, SavesNoMoreThanItsInputAndOneBytePerElement) {
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16}) {
    for (const auto& shape : {std::vector<int64_t>{128, 3, 1, 1},
                              {4, 3, 16, 16},
                              {4, 3, 15, 31},
                              {2, 3, 32, 32},
                              {300, 3, 1, 2},
                              {9, 3, 10, 11}}) {
      const torch::Tensor x = torch::randn(shape).to(type);
      for (const core::Scope& scope : {core::Scope{}, {1, 0}, {3, 0}, {0, 2}, {1, 3}}) {
        if (shape[2] * shape[3] == 1 && (scope.image_channels > 0 || scope.images > 0)) continue;
        const auto sizes = ops::kept_sizes(x, scope);
        const auto kept = ops::quantile_layer_forward(x, {}, {.scope = scope}, /*keep=*/true);
        const size_t bytes = kept.code.nbytes() + kept.table.nbytes() + (sizes.x ? x.nbytes() : 0);
        EXPECT_LE(bytes, x.nbytes() + static_cast<size_t>(x.numel()))
            << ops::describe(x) << " " << scope.image_channels << " " << scope.images;
      }
    }
  }
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
