// The fused layer in every scope.
#include <gtest/gtest.h>

#include "qact/ops/quantile_layer_impl.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

struct Vectors {
  torch::Tensor weight_in, bias_in, weight_out, bias_out;

  explicit Vectors(int64_t channels) {
    const auto vector = [&](double first, double step) {
      return (first + step * torch::arange(channels)).to(torch::kDouble).requires_grad_();
    };
    weight_in = vector(1.25, -0.5), bias_in = vector(-0.3, 0.2);
    weight_out = vector(0.75, 0.5), bias_out = vector(0.1, -0.4);
  }
  ops::LayerAffine affine() const { return {weight_in, bias_in, weight_out, bias_out}; }
};

double off(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

const std::vector<core::Scope>& scopes() {
  static const std::vector<core::Scope> table = {{2, 0}, {5, 0}, {0, 2}, {2, 3}, {3, 100}};
  return table;
}

// Contexts taken apart with torch's own operators and put together again.
torch::Tensor plain(const torch::Tensor& x, const Vectors& v, const core::Scope& scope) {
  std::vector<torch::Tensor> channels;
  for (int64_t c = 0; c < x.size(1); ++c) {
    const int64_t images = c < scope.image_channels ? 1 : scope.images_of(x.size(0));
    std::vector<torch::Tensor> contexts;
    for (const torch::Tensor& own : x.narrow(1, c, 1).split(images)) {
      contexts.push_back(std::get<0>(ops::quantile_layer(
          own.contiguous(), {v.weight_in.narrow(0, c, 1), v.bias_in.narrow(0, c, 1),
                             v.weight_out.narrow(0, c, 1), v.bias_out.narrow(0, c, 1)})));
    }
    channels.push_back(torch::cat(contexts));
  }
  return torch::cat(channels, 1);
}

TEST(Scope, IsThatOfEveryContextApart) {
  torch::manual_seed(1);
  for (const auto& shape : {std::vector<int64_t>{7, 5, 4, 3}, {4, 5, 17, 19}, {3, 5, 9}}) {
    const torch::Tensor values = torch::randn(shape, torch::kDouble) * 2 + 1;
    const torch::Tensor grad = torch::randn(shape, torch::kDouble);
    for (const core::Scope& scope : scopes()) {
      for (const Layout& layout : layouts()) {
        const torch::Tensor x = layout.of(values).detach().requires_grad_();
        const torch::Tensor same = values.clone().requires_grad_();
        const Vectors found(5), expected(5);
        const torch::Tensor y =
            std::get<0>(ops::quantile_layer(x, found.affine(), {.scope = scope}));
        const torch::Tensor one_by_one = plain(same, expected, scope);
        EXPECT_EQ(y.strides(), torch::empty_like(x).strides());
        y.backward(grad), one_by_one.backward(grad);
        const std::string what = describe(x, layout) + " " + std::to_string(scope.image_channels) +
                                 " " + std::to_string(scope.images);
        EXPECT_LE(off(y, one_by_one), 1e-12) << what;
        EXPECT_LE(off(x.grad(), same.grad()), 1e-9) << what;
        EXPECT_LE(off(found.weight_in.grad(), expected.weight_in.grad()), 1e-9) << what;
        EXPECT_LE(off(found.bias_in.grad(), expected.bias_in.grad()), 1e-9) << what;
        EXPECT_LE(off(found.weight_out.grad(), expected.weight_out.grad()), 1e-9) << what;
        EXPECT_LE(off(found.bias_out.grad(), expected.bias_out.grad()), 1e-9) << what;
      }
    }
  }
}

TEST(Scope, KeepsCodesOfContextsThatAreLongEnough) {
  const auto sizes = [](int64_t batch, int64_t side, const core::Scope& scope) {
    return ops::kept_sizes(torch::empty({batch, 6, side, side}), scope);
  };
  const auto half = sizes(4, 32, {3, 0});  // contexts of 1,024 and 4,096 values
  EXPECT_EQ(half.code_rows, 6);
  EXPECT_EQ(half.table_rows, 3 * 4 + 3);
  EXPECT_FALSE(half.x);
  const auto short_images = sizes(64, 16, {3, 0});  // of 256 and 16,384
  EXPECT_EQ(short_images.code_rows, 3);
  EXPECT_EQ(short_images.table_rows, 3);
  EXPECT_TRUE(short_images.x);
  const auto groups = sizes(4, 16, {0, 3});  // of 768, the last of 256
  EXPECT_EQ(groups.table_rows, 6 * 2);
  EXPECT_FALSE(groups.x);
  const auto few_images =
      sizes(4, 16, {3, 0});  // tables beside x would be more than a byte a value
  EXPECT_EQ(few_images.code_rows, 0);
  EXPECT_TRUE(few_images.x);
}

}  // namespace
}  // namespace qact::tests
