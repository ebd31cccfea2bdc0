#include "qact/losses/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace qact::losses {
namespace {

// Central differences of f at x, in double.
torch::Tensor finite_differences(const std::function<double(const torch::Tensor&)>& f,
                                 const torch::Tensor& x) {
  constexpr double kStep = 1e-6;
  torch::Tensor gradient = torch::zeros_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    torch::Tensor up = x.clone(), down = x.clone();
    up.view(-1)[i] += kStep;
    down.view(-1)[i] -= kStep;
    gradient.view(-1)[i] = (f(up) - f(down)) / (2 * kStep);
  }
  return gradient;
}

TEST(Losses, GradientsAreTheDifferences) {
  torch::manual_seed(5);
  const torch::Tensor embedding = torch::randn({18, 4}, torch::kDouble);
  const torch::Tensor labels = torch::arange(18) % 3;
  const torch::Tensor weight = torch::randn({4, 3}, torch::kDouble);
  for (const std::string& name : names()) {
    const Loss loss = make(name);
    const auto value = [&](const torch::Tensor& e) {
      base::Random random(1, 2);
      return loss.value({e, e.matmul(weight), labels}, random);
    };
    torch::Tensor e = embedding.clone().requires_grad_(true);
    value(e).backward();
    const torch::Tensor expected = finite_differences(
        [&](const torch::Tensor& x) { return value(x).item<double>(); }, embedding);
    EXPECT_TRUE(torch::allclose(e.grad(), expected, 1e-5, 1e-8)) << name;
    EXPECT_GT(e.grad().abs().sum().item<double>(), 0) << name;
  }
}

TEST(Losses, AreZeroWithoutPartners) {
  torch::Tensor embedding = torch::randn({3, 4}).requires_grad_(true);
  const torch::Tensor logits = torch::randn({3, 3});
  const torch::Tensor labels = torch::tensor({0, 1, 2});
  for (const std::string& name : names()) {
    const Loss loss = make(name);
    if (!loss.balanced) continue;
    base::Random random(1, 2);
    const torch::Tensor value = loss.value({embedding, logits, labels}, random);
    EXPECT_EQ(value.item<float>(), 0) << name;
    value.backward();
    EXPECT_EQ(embedding.grad().abs().sum().item<float>(), 0) << name;
  }
}

TEST(Losses, SurviveEqualSamplesAndShowNan) {
  const torch::Tensor labels = torch::arange(12) % 3;
  const torch::Tensor logits = torch::zeros({12, 3});
  for (const std::string& name : names()) {
    const Loss loss = make(name);
    base::Random random(1, 2);
    torch::Tensor equal = torch::ones({12, 4}).requires_grad_(true);
    const torch::Tensor value = loss.value({equal, logits + 0 * equal.sum(), labels}, random);
    value.backward();
    EXPECT_TRUE(torch::isfinite(value).item<bool>()) << name;
    EXPECT_TRUE(torch::isfinite(equal.grad()).all().item<bool>()) << name;

    torch::Tensor broken = torch::randn({12, 4});
    broken[3][1] = std::nan("");
    EXPECT_TRUE(loss.value({broken, logits + broken.sum(), labels}, random).isnan().item<bool>())
        << name;
  }
}

TEST(Losses, TakeHalfPrecisionAndGiveFloat) {
  const torch::Tensor embedding = torch::randn({12, 4}, torch::kBFloat16);
  const torch::Tensor labels = torch::arange(12) % 3;
  for (const std::string& name : names()) {
    base::Random random(1, 2);
    EXPECT_EQ(make(name).value({embedding, embedding, labels}, random).scalar_type(), torch::kFloat)
        << name;
  }
}

TEST(Losses, RefuseWhatTheyCannotHave) {
  EXPECT_THROW(make("mse"), c10::Error);
  EXPECT_THROW(make("triplet", {.margin = -1}), c10::Error);
  EXPECT_THROW(make("watershed", {.seeds = 0}), c10::Error);
  base::Random random(1, 1);
  const torch::Tensor x = torch::randn({4, 3});
  EXPECT_THROW(make("watershed").value({x, x, torch::zeros({3}, torch::kLong)}, random),
               c10::Error);
  EXPECT_THROW(make("watershed").value({x, x, torch::zeros({4})}, random), c10::Error);
}

TEST(Losses, CrossEntropyIsTorchs) {
  const torch::Tensor logits = torch::randn({5, 3});
  const torch::Tensor labels = torch::tensor({0, 2, 1, 1, 0});
  base::Random random(1, 1);
  EXPECT_TRUE(torch::allclose(make("cross-entropy").value({logits, logits, labels}, random),
                              torch::nn::functional::cross_entropy(logits, labels)));
}

}  // namespace
}  // namespace qact::losses
