#include "qact/losses/consistency.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/base/message.h"

namespace qact::losses {
namespace {

// One image, view and class at a time.
double plain_divergence(const std::vector<torch::Tensor>& logits) {
  const int64_t images = logits[0].size(0), classes = logits[0].size(1);
  const double views = static_cast<double>(logits.size());
  double sum = 0;
  for (int64_t b = 0; b < images; ++b) {
    std::vector<std::vector<double>> p;
    for (const torch::Tensor& view : logits) {
      double most = -INFINITY, total = 0;
      for (int64_t k = 0; k < classes; ++k) most = std::max(most, view[b][k].item<double>());
      p.emplace_back();
      for (int64_t k = 0; k < classes; ++k) {
        p.back().push_back(std::exp(view[b][k].item<double>() - most));
        total += p.back().back();
      }
      for (double& each : p.back()) each /= total;
    }
    for (int64_t k = 0; k < classes; ++k) {
      double mean = 0;
      for (const auto& view : p) mean += view[k] / views;
      mean = std::min(std::max(mean, 1e-7), 1.0);
      for (const auto& view : p) {
        if (view[k] > 0) sum += view[k] * std::log(view[k] / mean) / views;
      }
    }
  }
  return sum / static_cast<double>(images);
}

TEST(JensenShannon, IsThePlainSum) {
  torch::manual_seed(3);
  for (const double scale : {0.01, 1.0, 30.0, 1000.0}) {
    for (const int views : {2, 3}) {
      std::vector<torch::Tensor> logits;
      for (int v = 0; v < views; ++v) {
        logits.push_back(scale * torch::randn({4, 6}, torch::kDouble));
      }
      const double expected = plain_divergence(logits);
      EXPECT_NEAR(jensen_shannon(logits).item<double>(), expected, 1e-9 * (1 + expected));
      for (torch::Tensor& each : logits) each = each.to(torch::kBFloat16);
      EXPECT_NEAR(jensen_shannon(logits).item<double>(), plain_divergence(logits), 1e-5);
    }
  }
}

TEST(JensenShannon, IsZeroForEqualViewsAndLogTwoForOpposedOnes) {
  const torch::Tensor x = torch::randn({5, 3}, torch::kDouble);
  EXPECT_NEAR(jensen_shannon({x, x, x}).item<double>(), 0, 1e-12);
  const torch::Tensor a = torch::tensor({{900.0, 0.0}}), b = torch::tensor({{0.0, 900.0}});
  EXPECT_NEAR(jensen_shannon({a, b}).item<double>(), std::log(2), 1e-6);
}

TEST(JensenShannon, HasTheGradientOfItsDifferences) {
  torch::manual_seed(4);
  std::vector<torch::Tensor> logits;
  for (int v = 0; v < 3; ++v) {
    logits.push_back(torch::randn({2, 3}, torch::kDouble).requires_grad_(true));
  }
  jensen_shannon(logits).backward();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& view : logits) {
    for (int64_t i = 0; i < view.numel(); ++i) {
      torch::Tensor entry = view.view(-1)[i];
      constexpr double kStep = 1e-6;
      entry += kStep;
      const double above = plain_divergence(logits);
      entry -= 2 * kStep;
      const double below = plain_divergence(logits);
      entry += kStep;
      EXPECT_NEAR(view.grad().view(-1)[i].item<double>(), (above - below) / (2 * kStep), 1e-8);
    }
  }
}

TEST(JensenShannon, NamesWhatItCannotCompare) {
  const torch::Tensor x = torch::zeros({2, 3});
  expect_in("expected 2 views or more, got 1", message_of([&] { jensen_shannon({x}); }));
  expect_in("expected logits (B,K) of the same shape",
            message_of([&] { jensen_shannon({x, torch::zeros({2, 4})}); }));
}

}  // namespace
}  // namespace qact::losses
