// The plain operator, given quantiles and contexts on the GPU, against the CPU.
#include <gtest/gtest.h>

#include "qact/ops/context.h"
#include "qact/ops/layer_track.h"
#include "qact/ops/quantile_activation_impl.h"
#include "qact/ops/quantile_apply.h"
#include "tests/core/layer_check.h"
#include "tests/core/tolerance.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

using core::testing::Distribution;
using core::testing::kDistributions;

// Within a quarter of a level of the oracle's; where c lies among the values, of one value more.
void expect_binned_levels(const torch::Tensor& x, const torch::Tensor& y) {
  const core::reference::Parameters parameters;
  for (int64_t c = 0; c < x.size(1); ++c) {
    const std::vector<double> values = channel(x, c);
    std::vector<int> level;
    for (const double v : channel(y.cpu(), c)) {
      level.push_back(static_cast<int>(std::lround(v * parameters.levels)));
    }
    double negatives = 0, slack = core::testing::tolerance::level(/*exact=*/false);
    bool beyond = false;
    for (const double v : values) {
      negatives += v < 0;
      beyond |= std::abs(v) >= parameters.bound;
    }
    const double fewest = std::min(negatives, static_cast<double>(values.size()) - negatives) + 1;
    if (beyond) slack += (parameters.levels + 1) / fewest;
    core::testing::expect_levels(values, level, parameters, slack, [](double) { return 0.0; });
  }
}

TEST(CudaActivation, EqualsTheCpu) {
  for (const Distribution distribution : kDistributions) {
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {1, 2}, {7, 5}, {200, 3}, {40, 3, 7, 9}, {100, 5, 20, 20}}) {
      for (const char* algorithm : {"auto", "exact", "binned"}) {
        for (int i : {0, 1}) {
          const torch::Tensor x = layouts()[i].of(drawn(shape, distribution).to(torch::kFloat));
          const std::string what =
              std::string(name(distribution)) + " " + algorithm + " " + describe(x, layouts()[i]);
          const auto forward = [&](const torch::Tensor& v) {
            return ops::quantile_activation_forward(v, {.quantile = {.algorithm = algorithm}},
                                                    /*need_density=*/true);
          };
          const auto [y, f] = forward(x);
          const auto [gpu_y, gpu_f] = forward(on_gpu(x));
          if (algorithm == std::string("binned")) {
            // It has fewer bins than the CPU, and may rank what the CPU bins: each for itself.
            SCOPED_TRACE(what);
            expect_binned_levels(x, gpu_y);
          } else {
            EXPECT_LE(differing(gpu_y, y, 0.005), 2e-4) << what;
          }
          EXPECT_LE(differing(gpu_y, y, 0.0201), 0) << what;
          // Over so wide a range, the GPU's bins are no narrower than the density's nodes.
          const bool wide = distribution == Distribution::beyond_bound;
          EXPECT_LE(relative_error(gpu_f, f), wide ? 0.08 : 0.02) << what;
        }
      }
    }
  }
}

TEST(CudaActivation, NanAndInfinities) {
  torch::Tensor x = torch::randn({500, 1});
  x[3][0] = NAN, x[4][0] = INFINITY, x[5][0] = -INFINITY;
  for (const torch::Tensor& v : {x, x.narrow(0, 0, 100)}) {
    const auto [y, f] = ops::quantile_activation_forward(v, {}, /*need_density=*/true);
    const auto [gpu_y, gpu_f] =
        ops::quantile_activation_forward(v.cuda(), {}, /*need_density=*/true);
    EXPECT_LE(differing(gpu_y, y, 0.0101), 0);
    EXPECT_TRUE(gpu_f[3][0].isnan().item<bool>());
    EXPECT_EQ(gpu_f[4][0].item<float>(), 0);
    EXPECT_EQ(gpu_f[5][0].item<float>(), 0);
  }
}

TEST(CudaActivation, ManyLevelsAndNone) {
  const torch::Tensor x = torch::randn({300, 4, 3});
  for (const bool quantised : {true, false}) {
    const ops::ActivationOptions options = {.quantile = {.levels = 3000, .positive_share = 0.9},
                                            .quantised = quantised};
    const auto y = ops::quantile_activation(x, options);
    const auto gpu = ops::quantile_activation(x.cuda(), options);
    EXPECT_LE(differing(gpu, y, 1e-6), 0);
  }
}

TEST(CudaActivation, Quantiles) {
  torch::Tensor x = torch::randn({50, 3, 4}, torch::kDouble);
  x[2][1][1] = NAN;
  EXPECT_LE(differing(ops::quantiles(x.cuda()), ops::quantiles(x), 1e-9), 0);
}

TEST(CudaContext, EqualsTheCpu) {
  const torch::Tensor x = torch::randn({60, 5, 9, 9}), other = torch::randn({60, 5, 9, 9}) * 3;
  const torch::Tensor scale = torch::rand({5}) + 0.5, shift = torch::randn({5});
  const auto context = ops::context_build(x, scale, shift);
  EXPECT_TRUE(ops::context_build(x.cuda(), scale.cuda(), shift.cuda()).cpu().equal(context));
  const auto more = ops::context_build(other);
  const auto blended = ops::context_blend(context, 900, more, 124);
  EXPECT_TRUE(ops::context_blend(context.cuda(), 900, more.cuda(), 124).cpu().equal(blended));
  EXPECT_LE(
      differing(ops::context_quantiles(blended.cuda()), ops::context_quantiles(blended), 1e-9), 0);
}

TEST(CudaContext, TrackEqualsTheCpu) {
  std::vector<torch::Tensor> cpu, gpu;
  for (int i = 0; i < 4; ++i) cpu.push_back(torch::rand({6}) + 0.1);
  cpu.push_back(ops::context_standard_normal(6));
  cpu.push_back(torch::tensor(int64_t{3}));
  for (const auto& t : cpu) gpu.push_back(t.cuda());
  const auto stats = torch::rand({6, 8}, torch::kDouble);
  const auto batch = ops::context_build(torch::randn({100, 6, 3}));
  ops::layer_track({cpu[0], cpu[1], cpu[2], cpu[3], cpu[4], cpu[5]},
                   {stats, batch, 0.1, 300, 1024});
  ops::layer_track({gpu[0], gpu[1], gpu[2], gpu[3], gpu[4], gpu[5]},
                   {stats.cuda(), batch.cuda(), 0.1, 300, 1024});
  for (int i = 0; i < 4; ++i) EXPECT_LE(differing(gpu[i], cpu[i], 1e-6), 0);
  EXPECT_TRUE(gpu[4].cpu().equal(cpu[4]));
  EXPECT_EQ(gpu[5].item<int64_t>(), 4);
}

TEST(CudaApply, EqualsTheCpu) {
  for (const bool quantised : {true, false}) {
    for (int i : {0, 1}) {
      const torch::Tensor x = layouts()[i].of(torch::randn({40, 3, 5, 7}) * 2);
      const torch::Tensor q = ops::quantiles(torch::randn({500, 3}));
      const torch::Tensor scale = torch::rand({3}) + 0.5, shift = torch::randn({3});
      const auto run = [&](torch::Device device) {
        torch::Tensor v = on_gpu(x).to(device).detach().requires_grad_();
        torch::Tensor s = scale.to(device).detach().requires_grad_();
        const auto y =
            ops::quantile_apply(v, q.to(device), s, shift.to(device), s, {}, 0.5, quantised);
        (y * y).sum().backward();
        return std::vector<torch::Tensor>{y.detach(), v.grad(), s.grad()};
      };
      const auto cpu = run(torch::kCPU), gpu = run(torch::kCUDA);
      EXPECT_LE(differing(gpu[0], cpu[0], 1e-5), 1e-3);
      EXPECT_LE(relative_error(gpu[1], cpu[1]), 0.01);
      EXPECT_LE(relative_error(gpu[2], cpu[2]), 0.01);
    }
  }
}

}  // namespace
}  // namespace qact::tests
