#include "qact/nn/instance_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/nn/activation.h"
#include "qact/nn/context_mode.h"
#include "tests/base/message.h"

namespace qact::nn {
namespace {

constexpr int64_t kFeatures = 5, kInstance = 2;

InstanceBatchNorm example() {
  torch::manual_seed(5);
  InstanceBatchNorm norm(kFeatures);
  norm->to(torch::kDouble);
  torch::NoGradGuard no_grad;
  for (torch::Tensor& p : norm->parameters()) p.copy_(torch::randn_like(p));
  for (int i = 0; i < 3; ++i) norm(3 * torch::randn({4, kFeatures, 2, 3}, torch::kDouble) + 1);
  return norm;
}

// max(0, (x - mean) / sqrt(var + eps) * weight + bias), one value at a time: an image's channel has
// its own moments, a batch's channel has those of the batch, or the running ones.
torch::Tensor plain_halves(InstanceBatchNorm& norm, const torch::Tensor& x, bool running) {
  torch::Tensor y = torch::empty_like(x);
  for (int64_t b = 0; b < x.size(0); ++b) {
    for (int64_t c = 0; c < x.size(1); ++c) {
      const bool in_image = c < kInstance;
      const int64_t k = in_image ? c : c - kInstance;
      const torch::Tensor values = in_image ? x[b][c] : x.select(1, c);
      double mean = 0, var = 0;
      for (int64_t i = 0; i < values.numel(); ++i) {
        mean += values.flatten()[i].item<double>() / values.numel();
      }
      for (int64_t i = 0; i < values.numel(); ++i) {
        var += std::pow(values.flatten()[i].item<double>() - mean, 2) / values.numel();
      }
      if (running && !in_image) {
        mean = norm->batch->running_mean[k].item<double>();
        var = norm->batch->running_var[k].item<double>();
      }
      const auto affine = [&](const torch::Tensor& own, const torch::Tensor& batch) {
        return (in_image ? own : batch)[k].item<double>();
      };
      const double scale = affine(norm->weight, norm->batch->weight) / std::sqrt(var + 1e-5);
      y[b][c] = ((x[b][c] - mean) * scale + affine(norm->bias, norm->batch->bias)).clamp_min(0);
    }
  }
  return y;
}

double furthest(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(InstanceBatchNorm, IsWhatItsNameSaysInEveryMode) {
  torch::NoGradGuard no_grad;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{4, kFeatures, 3, 2}, {1, kFeatures, 4, 4}, {3, kFeatures, 7}}) {
    InstanceBatchNorm norm = example();
    const torch::Tensor x = 2 * torch::randn(shape, torch::kDouble) - 1;
    const torch::Tensor strided = x.transpose(1, 2).contiguous().transpose(1, 2);
    norm->eval();
    EXPECT_LT(furthest(norm(x), plain_halves(norm, x, /*running=*/true)), 1e-12);
    EXPECT_LT(furthest(norm(strided), plain_halves(norm, x, /*running=*/true)), 1e-12);
    set_context_mode(*norm, ContextMode::batch);
    EXPECT_LT(furthest(norm(x), plain_halves(norm, x, /*running=*/false)), 1e-12);
    norm->train();
    EXPECT_LT(furthest(norm(x), plain_halves(norm, x, /*running=*/false)), 1e-12);
  }
}

// The first half works for a single image in any mode, and has nothing to save.
TEST(InstanceBatchNorm, KeepsNoStateOfItsImages) {
  InstanceBatchNorm norm = example();
  std::set<std::string> names;
  for (const auto& item : norm->named_buffers()) names.insert(item.key());
  EXPECT_EQ(names, (std::set<std::string>{"batch.running_mean", "batch.running_var",
                                          "batch.num_batches_tracked"}));
  EXPECT_EQ(norm->batch->running_mean.size(0), kFeatures - kInstance);
  norm->eval();
  const torch::Tensor x = torch::randn({4, kFeatures, 3, 3}, torch::kDouble);
  for (const ContextMode mode : {ContextMode::tracked, ContextMode::batch, ContextMode::prior}) {
    set_context_mode(*norm, mode);
    const auto images = [&](const torch::Tensor& in) { return norm(in).narrow(1, 0, kInstance); };
    EXPECT_LT(furthest(images(x)[1], images(x.narrow(0, 1, 1))[0]), 1e-12);
  }
}

TEST(InstanceBatchNorm, TakesBfloat16AndSaysWhatItCannotTake) {
  InstanceBatchNorm norm(kFeatures);
  const torch::Tensor x = torch::randn({2, kFeatures, 8, 8});
  EXPECT_LT(furthest(norm(x.to(torch::kBFloat16)), norm(x)), 0.05);
  expect_in("more than one value per image and channel to take statistics from, got",
            message_of([&] { norm(torch::randn({4, kFeatures})); }));
  expect_in("expected 5 channels in dimension 1", message_of([&] { norm(x.narrow(1, 0, 4)); }));
  expect_in("num_features > 1, got 1", message_of([] { InstanceBatchNorm one(1); }));
}

TEST(InstanceBatchNorm, IsAnActivationThatNormsItsInput) {
  const torch::nn::AnyModule activation = make_activation("ibn-relu", 4);
  EXPECT_TRUE(norms_input(activation));
  EXPECT_TRUE(uses_single_images(activation));
  EXPECT_FALSE(uses_single_images(make_activation("bn-relu", 4)));
  EXPECT_FALSE(uses_single_images(make_activation("qact", 4)));
  EXPECT_TRUE(uses_single_images(make_activation("qact", 4, 0.5)));
  EXPECT_FALSE(uses_single_images(make_activation("qact", 1, 0.5)));  // rounded down: none
}

}  // namespace
}  // namespace qact::nn
