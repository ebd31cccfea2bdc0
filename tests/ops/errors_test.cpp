// What the input checks refuse, and in which words.
#include <gtest/gtest.h>

#include <limits>

#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/quantile_activation_impl.h"
#include "qact/ops/quantile_apply_impl.h"
#include "qact/ops/quantile_layer_impl.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refusal {
  std::function<void()> call;
  std::string message;
};

void expect_refusals(const std::vector<Refusal>& table) {
  for (const Refusal& refusal : table) EXPECT_EQ(message_of(refusal.call), refusal.message);
}

TEST(Errors, QuantileActivation) {
  using ops::quantile_activation;
  const torch::Tensor x = torch::randn({4, 3});
  const std::string op = "[quantile_activation] expected ";
  expect_refusals({
      {[] { quantile_activation(torch::zeros({3}, torch::kLong)); },
       op + "a floating tensor of 2 or more dimensions, got int64 of shape (3)"},
      {[] { quantile_activation(torch::zeros({3})); },
       op + "a floating tensor of 2 or more dimensions, got float32 of shape (3)"},
      {[] { quantile_activation(torch::zeros({3, 2}, torch::kComplexFloat)); },
       op + "a floating tensor of 2 or more dimensions, got complex64 of shape (3,2)"},
      {[] { quantile_activation(torch::zeros({0, 3})); },
       op + "at least one value, got float32 of shape (0,3)"},
      {[] { quantile_activation(torch::zeros({2, 0, 4})); },
       op + "at least one value, got float32 of shape (2,0,4)"},
      {[=] { quantile_activation(torch::zeros({1, 1}).expand({1 << 30, 1})); },
       op + "fewer than 2^30 values per channel, got float32 of shape (1073741824,1)"},
      {[=] { quantile_activation(x, {.quantile = {.levels = 1}}); },
       op + "levels in 2..65535, got 1"},
      {[=] { quantile_activation(x, {.quantile = {.levels = 65536}}); },
       op + "levels in 2..65535, got 65536"},
      {[=] { quantile_activation(x, {.quantile = {.bound = 0}}); },
       op + "a finite bound > 0, got 0"},
      {[=] { quantile_activation(x, {.quantile = {.bound = kNaN}}); },
       op + "a finite bound > 0, got nan"},
      {[=] { quantile_activation(x, {.quantile = {.positive_share = 0}}); },
       op + "positive_share in (0, 1), got 0"},
      {[=] { quantile_activation(x, {.quantile = {.positive_share = 1}}); },
       op + "positive_share in (0, 1), got 1"},
      {[=] { quantile_activation(x, {.quantile = {.positive_share = kNaN}}); },
       op + "positive_share in (0, 1), got nan"},
      {[=] { quantile_activation(x, {.quantile = {.bandwidth = 0}}); },
       op + "a finite bandwidth > 0, got 0"},
      {[=] { quantile_activation(x, {.quantile = {.bandwidth = kInfinity}}); },
       op + "a finite bandwidth > 0, got inf"},
      {[=] { quantile_activation(x, {.quantile = {.algorithm = "sorted"}}); },
       op + "algorithm auto, exact or binned, got 'sorted'"},
      {[=] { quantile_activation(x, {.density_samples = -1}); },
       op + "density_samples >= 0, got -1"},
      {[=] { ops::quantile_activation_backward(x, x.select(1, 0)); },
       "[quantile_activation_backward] expected density to be float32 of shape (4,3), got "
       "float32 of shape (4)"},
      {[=] { ops::quantiles(x, 1); }, "[quantiles] expected levels in 2..65535, got 1"},
  });
}

TEST(Errors, QuantileLayer) {
  using ops::quantile_layer;
  const torch::Tensor x = torch::randn({4, 3}), three = torch::ones({3});
  const std::string op = "[quantile_layer] expected ";
  expect_refusals({
      {[] { quantile_layer(torch::zeros({3, 2}, torch::kInt)); },
       op + "a floating tensor of 2 or more dimensions, got int32 of shape (3,2)"},
      {[] { quantile_layer(torch::zeros({1, 2})); },
       op + "more than one value per channel to take statistics from, got float32 of shape (1,2)"},
      {[=] { quantile_layer(torch::zeros({0, 3}), {three, three, three, three}); },
       op + "at least one value, got float32 of shape (0,3)"},
      {[=] { quantile_layer(x, {.weight_in = torch::ones({4})}); },
       op + "weight_in to be a floating tensor of shape (3), one number per channel, got float32 "
            "of shape (4)"},
      {[=] { quantile_layer(x, {.bias_out = torch::ones({3}, torch::kLong)}); },
       op + "bias_out to be a floating tensor of shape (3), one number per channel, got int64 of "
            "shape (3)"},
      {[=] { quantile_layer(x, {}, {.eps = 0}); }, op + "a finite eps > 0, got 0"},
      {[=] { quantile_layer(x, {}, {.eps = kNaN}); }, op + "a finite eps > 0, got nan"},
      {[=] { quantile_layer(x, {}, {.quantile = {.levels = 256}}); },
       op + "levels in 2..255, got 256"},
      {[=] { quantile_layer(x, {}, {.quantile = {.levels = 1}}); }, op + "levels in 2..255, got 1"},
      {[=] { quantile_layer(x, {}, {.quantile = {.bandwidth = 0}}); },
       op + "a finite bandwidth > 0, got 0"},
      {[=] { quantile_layer(x, {}, {.scope = {.image_channels = 4}}); },
       op + "image_channels in 0..3, the channels of x, got 4"},
      {[=] { quantile_layer(x, {}, {.scope = {.images = -1}}); },
       op + "context_images >= 0, got -1"},
      {[=] { quantile_layer(x, {}, {.scope = {.image_channels = 1}}); },
       op + "more than one value per context to take statistics from, got contexts of one image "
            "with one value, in float32 of shape (4,3)"},
      {[=] { quantile_layer(x, {}, {.scope = {.images = 3}}); },
       op + "more than one value per context to take statistics from, got contexts of one image "
            "with one value, in float32 of shape (4,3)"},
  });
}

TEST(Errors, QuantileLayerBackward) {
  const torch::Tensor x = torch::randn({4, 3, 20, 20});
  const auto forward = ops::quantile_layer_forward(x, {}, {}, /*keep=*/true);
  const ops::LayerKept kept{{}, forward.code, forward.table, forward.stats};
  const auto backward = [&](const auto& spoil, const ops::LayerAffine& affine = {}) {
    ops::LayerKept spoiled = kept;
    torch::Tensor grad = x;
    spoil(spoiled, grad);
    return message_of([&] { ops::quantile_layer_backward(grad, spoiled, affine, {}); });
  };
  using Kept = ops::LayerKept;
  const std::string op = "[quantile_layer_backward] expected ";
  EXPECT_EQ(backward([](Kept&, torch::Tensor&) {}), "");
  EXPECT_EQ(backward([&](Kept& some, torch::Tensor&) { some.x = x.to(torch::kDouble); }),
            op + "x to be float32 of shape (4,3,20,20), got float64 of shape (4,3,20,20)");
  EXPECT_EQ(backward([](Kept& some, torch::Tensor&) { some.code = some.code.to(torch::kInt); }),
            op + "code to be uint8 of shape (3,1600), got int32 of shape (3,1600)");
  EXPECT_EQ(backward([](Kept& some, torch::Tensor&) { some.table = torch::zeros({0}); }),
            op + "table to be " + ops::describe(kept.table) + ", got float32 of shape (0)");
  EXPECT_EQ(backward([](Kept& some, torch::Tensor&) { some.stats = some.stats.narrow(0, 0, 2); }),
            op + "stats to be " + ops::describe(kept.stats) + ", got float64 of shape (2,8)");
  EXPECT_EQ(backward([](Kept& some, torch::Tensor& grad) {
              grad = grad.slice(3, 0, 5).slice(2, 0, 5);
              some.code = some.code.slice(0, 0, 0).slice(1, 0, 100);
              some.table = some.table.slice(0, 0, 0);
            }),
            op + "x, which codes of float32 of shape (4,3,5,5) do not replace, got none");
  EXPECT_EQ(backward([](Kept&, torch::Tensor&) {}, {.weight_in = torch::ones({2})}),
            op + "weight_in to be a floating tensor of shape (3), one number per channel, got "
                 "float32 of shape (2)");
}

TEST(Errors, Contexts) {
  const torch::Tensor one = ops::context_standard_normal(1), two = ops::context_standard_normal(2);
  expect_refusals({
      {[] { ops::context_build(torch::zeros({0, 3})); },
       "[context_build] expected at least one value, got float32 of shape (0,3)"},
      {[] { ops::context_build(torch::zeros({2, 3}), torch::ones({2})); },
       "[context_build] expected scale to be a floating tensor of shape (3), one number per "
       "channel, got float32 of shape (2)"},
      {[=] { ops::context_blend(one, 1, two, 1); },
       "[context_blend] expected b to be int64 of shape (1,256), got int64 of shape (2,256)"},
      {[=] { ops::context_blend(one, -1, one, 1); },
       "[context_blend] expected a number of values in [0, 2^46), got -1"},
      {[=] { ops::context_blend(one, 1, one, kNaN); },
       "[context_blend] expected a number of values in [0, 2^46), got nan"},
      {[=] { ops::context_quantiles(one.to(torch::kFloat)); },
       "[context_quantiles] expected context to be an int64 tensor of shape (channels,256), got "
       "float32 of shape (1,256)"},
      {[=] { ops::context_quantiles(one, 1); },
       "[context_quantiles] expected levels in 2..65535, got 1"},
  });
}

TEST(Errors, QuantileApply) {
  const torch::Tensor x = torch::zeros({2, 3}), quantiles = torch::zeros({3, 10});
  expect_refusals({
      {[=] { ops::quantile_apply(x, torch::zeros({2, 10})); },
       "[quantile_apply] expected quantiles to be a floating tensor of shape (3,levels) with "
       "levels in 2..65535, got float32 of shape (2,10)"},
      {[=] { ops::quantile_apply(x, quantiles, {}, torch::zeros({1})); },
       "[quantile_apply] expected shift to be a floating tensor of shape (3), one number per "
       "channel, got float32 of shape (1)"},
      {[=] { ops::quantile_apply(x, quantiles, {}, {}, {}, {}, 0); },
       "[quantile_apply] expected a finite bandwidth > 0, got 0"},
      {[=] { ops::quantile_apply_backward(x.t(), x, quantiles, {}, {}, {}, 0.5); },
       "[quantile_apply_backward] expected grad_y to be float32 of shape (2,3), got float32 of "
       "shape (3,2)"},
      {[=] { ops::quantile_apply_backward(x, x, quantiles, torch::zeros({1}), {}, {}, 0.5); },
       "[quantile_apply_backward] expected scale to be a floating tensor of shape (3), one number "
       "per channel, got float32 of shape (1)"},
  });
}

}  // namespace
}  // namespace qact::tests
