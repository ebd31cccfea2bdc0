// Differentiating twice is an error, also where the gradient is made of nothing that depends on x.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_apply.h"
#include "qact/ops/quantile_layer.h"
#include "qact/ops/quantile_layer_world.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

using torch::autograd::grad;
using Differentiable = std::function<torch::Tensor(const torch::Tensor&)>;

const std::vector<std::pair<std::string, Differentiable>>& differentiable() {
  static const torch::Tensor ones = torch::ones({2}), zeros = torch::zeros({2});
  static const std::vector<std::pair<std::string, Differentiable>> table = {
      {"layer", [](const torch::Tensor& x) { return std::get<0>(ops::quantile_layer(x)); }},
      {"layer with vectors",
       [](const torch::Tensor& x) {
         return std::get<0>(ops::quantile_layer(x, {ones, zeros, ones, zeros}));
       }},
      {"activation", [](const torch::Tensor& x) { return ops::quantile_activation(x); }},
      {"world", [](const torch::Tensor& x) { return ops::quantile_layer_world(x, {}, {}, "").y; }},
      {"apply",
       [](const torch::Tensor& x) {
         return ops::quantile_apply(x, torch::linspace(-2, 2, 9, torch::kDouble).repeat({2, 1}));
       }},
  };
  return table;
}

TEST(Twice, IsRefusedByEveryOperator) {
  for (const auto& [name, layer] : differentiable()) {
    for (const int64_t n : {10, 3000}) {
      SCOPED_TRACE(name + " of " + std::to_string(n));
      torch::manual_seed(1);
      const torch::Tensor leaf = torch::randn({n, 2}).requires_grad_(), x = leaf * 2;
      const torch::Tensor weight = torch::randn({n, 2}), y = layer(x);
      const torch::Tensor first =
          grad({(y * weight).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
      EXPECT_TRUE(
          torch::equal(first, grad({(y * weight).sum()}, {x}, {}, /*retain_graph=*/true)[0]));
      const torch::Tensor loss = y.square().sum() + first.square().sum();
      EXPECT_NE(message_of([&] { grad({loss}, {leaf}, {}, /*retain_graph=*/true); }), "");
      EXPECT_NE(message_of([&] { loss.backward(); }), "");
    }
  }
}

TEST(Twice, NamesTheOperator) {
  const torch::Tensor x = torch::randn({3000, 2}).requires_grad_();
  const torch::Tensor y = ops::quantile_activation(x);
  const torch::Tensor first = grad({y.sum()}, {x}, {}, true, true)[0];
  EXPECT_EQ(message_of([&] { first.sum().backward(); }),
            "[quantile_activation] expected to be differentiated once, got a second derivative "
            "asked for: the gradient cannot be differentiated");
}

}  // namespace
}  // namespace qact::tests
