// The fused layer on the GPU against the same layer on the CPU, which is tested against
// the oracle.
#include "qact/ops/quantile_layer.h"

#include <gtest/gtest.h>

#include "tests/core/tolerance.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

using core::testing::Distribution;
using core::testing::kDistributions;

struct LayerRun {
  torch::Tensor y, stats, context, grad_x, affine;  // affine: the gradients, [4][channels]
  torch::Tensor w1, w2, b2;

  LayerRun(const torch::Tensor& x, const torch::Tensor& grad, const char* algorithm,
           int64_t levels = 100, const core::Scope& scope = {}) {
    const int64_t channels = x.size(1);
    const auto vector = [&](double first, double step) {
      return (first + step * torch::arange(channels).remainder(7)).to(torch::kFloat).to(x.device());
    };
    const torch::Tensor b1 = vector(-0.3, 0.2);
    w1 = vector(1.25, -0.5), w2 = vector(0.75, 0.5), b2 = vector(0.1, -0.4);
    const torch::Tensor input = x.detach();
    for (const torch::Tensor& leaf : {input, w1, b1, w2, b2}) leaf.requires_grad_();
    std::tie(y, stats, context) = ops::quantile_layer(
        input, {w1, b1, w2, b2},
        {.quantile = {.levels = levels, .algorithm = algorithm}, .track = true, .scope = scope});
    const auto grads = torch::autograd::grad({y}, {input, w1, b1, w2, b2}, {grad});
    y = y.detach();
    grad_x = grads[0];
    affine = torch::stack({grads[1], grads[2], grads[3], grads[4]});
  }
};

torch::Tensor channel_rows(const torch::Tensor& x) {
  return x.detach().to(torch::kDouble).movedim(1, 0).flatten(1);
}

// What the gradients of the four vectors may be off by, from the sums of their absolute terms:
// tolerance.h, twice, since the CPU's are by code, too.
torch::Tensor allowed_of_affine(const torch::Tensor& x, const torch::Tensor& grad,
                                const LayerRun& cpu) {
  namespace tolerance = core::testing::tolerance;
  constexpr auto kCodes = tolerance::Kept::codes;
  const auto column = [](const torch::Tensor& v) {
    return v.detach().to(torch::kDouble).unsqueeze(1);
  };
  const auto stat = [&](int64_t i) { return column(cpu.stats.select(1, i)); };
  const torch::Tensor rows = channel_rows(x), dy = channel_rows(grad);
  const torch::Tensor unit = (stat(1) + 1e-5).rsqrt(), xhat = (rows - stat(0)) * unit;
  const torch::Tensor yhat = (channel_rows(cpu.y) - column(cpu.b2)) / column(cpu.w2);
  // grad_x is dz less what the inner norm's backward pass takes from it.
  const torch::Tensor taken = column(cpu.affine[1]) + xhat * column(cpu.affine[0]);
  const torch::Tensor dz = channel_rows(cpu.grad_x) / (column(cpu.w1) * unit) +
                           taken / static_cast<double>(rows.size(1));
  int64_t distinct = rows.size(1);
  for (const torch::Tensor& row : rows.unbind()) {
    distinct = std::min(distinct, std::get<0>(at::_unique(row)).numel());
  }
  // Narrow values tie, so that their codes' errors do not cancel, either.
  const bool few = distinct <= 4 * tolerance::kFewValues || x.element_size() == 2;
  const double share = 2 * tolerance::density_sum(kCodes, few);
  const double apart = 2 * tolerance::apart(kCodes, core::DType::f32);
  const torch::Tensor size = dy.abs().sum(1);
  return torch::stack({share * (dz * xhat).abs().sum(1), share * dz.abs().sum(1),
                       0.02 * (dy * yhat).abs().sum(1), apart * size}) +
         apart * size;
}

void expect_same(const torch::Tensor& x, const char* algorithm, const std::string& what,
                 double off_by_rounding, int64_t levels = 100) {
  const torch::Tensor grad = torch::randn(x.sizes(), torch::kDouble).to(x.scalar_type());
  const LayerRun cpu(x, grad, algorithm, levels), gpu(on_gpu(x), grad.cuda(), algorithm, levels);
  const bool narrow = x.element_size() == 2;  // its values tie, and move between levels together
  // Half a level of the outer norm's output.
  const torch::Tensor level = 0.5 / static_cast<double>(levels) * cpu.affine.new_ones({}) * 3.5 /
                              (cpu.stats.select(1, 3) + 1e-5).sqrt();
  EXPECT_LE(differing(gpu.stats.slice(1, 0, 4), cpu.stats.slice(1, 0, 4),
                      (narrow ? 1e-4 : 1e-5) *
                          (1 + cpu.stats.slice(1, 0, 4).abs().nan_to_num().max().item<double>())),
            0)
      << what;
  const double step = 0.0025 * level.nan_to_num().min().item<double>();
  EXPECT_LE(differing(gpu.y, cpu.y, narrow ? 0.05 : std::max(step, 1e-3)), off_by_rounding) << what;
  if (x.numel() / x.size(1) > 3) {  // of two values, norms leave no gradient but rounding
    EXPECT_LE(relative_error(gpu.grad_x, cpu.grad_x), narrow ? 0.03 : 0.02) << what;
    const torch::Tensor off = (gpu.affine.cpu() - cpu.affine).to(torch::kDouble).abs();
    const torch::Tensor over = off / allowed_of_affine(x, grad, cpu);
    EXPECT_LE(over.nan_to_num(0).max().item<double>(), 1)
        << what << ": times what is allowed of the gradients of weight_in, bias_in, weight_out and "
        << "bias_out: " << over.amax(1);
  }
  // A plain sum, which needs neither levels nor densities; both sides round it.
  const torch::Tensor dy = channel_rows(grad).abs().sum(1);
  const double rounding = 2 * core::testing::tolerance::sum(core::DType::f32) + 0x1p-23;
  EXPECT_LE(differing(gpu.affine.select(0, 3).cpu() / dy, cpu.affine.select(0, 3) / dy, rounding),
            0)
      << what << ", bias_out";
  EXPECT_TRUE(gpu.context.sum(1).cpu().equal(cpu.context.sum(1))) << what;
  EXPECT_LE(differing(gpu.context, cpu.context, 65536.0 * 2), 0.04) << what;
  EXPECT_EQ(gpu.y.strides(), torch::empty_like(x).strides()) << what;
}

TEST(CudaLayer, EqualsTheCpuOverShapesTypesAndLayouts) {
  torch::manual_seed(0);
  for (const auto& shape : shapes()) {
    if (shape[0] * (shape.size() > 2 ? shape[2] : 1) < 2) continue;
    const torch::Tensor values = torch::randn(shape, torch::kDouble) * 2 + 0.5;
    for (const auto type : types()) {
      if (type == torch::kDouble) continue;  // is refused
      for (const Layout& layout : layouts()) {
        const torch::Tensor x = layout.of(values.to(type));
        expect_same(x, "auto", describe(x, layout), 0.02);
      }
    }
  }
}

TEST(CudaLayer, EqualsTheCpuOnLargeChannels) {
  torch::manual_seed(0);
  // The first two: one block for a channel or four, with few heavy bins, and with none.
  const std::vector<std::vector<int64_t>> large = {
      {20, 12, 4, 4},   {128, 16, 4, 4}, {128, 8, 8, 8}, {128, 100, 16, 16}, {64, 8, 16, 16},
      {50, 12, 33, 31}, {33, 7, 64, 64}, {9000, 40},     {70000, 3, 2},      {50, 18, 90, 90}};
  for (const auto& shape : large) {
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      for (int i : {0, 1}) {
        const torch::Tensor x = layouts()[i].of(torch::randn(shape).to(type));
        expect_same(x, "auto", describe(x, layouts()[i]), 1e-5);
      }
    }
  }
}

// Up to 127 levels a block's tables are short ones, up to 254 a byte can mark a heavy bin.
TEST(CudaLayer, EqualsTheCpuAtTheLimitsOfLevels) {
  torch::manual_seed(0);
  for (const int64_t levels : {127, 128, 254, 255}) {
    for (const auto& shape :
         std::vector<std::vector<int64_t>>{{21, 8, 7, 7}, {128, 8, 4, 4}, {128, 8, 6, 6}}) {
      for (const auto type : {torch::kFloat, torch::kBFloat16}) {
        for (int i : {0, 1}) {
          const torch::Tensor x = layouts()[i].of(torch::randn(shape).to(type));
          expect_same(x, "auto", std::to_string(levels) + " " + describe(x, layouts()[i]), 2e-4,
                      levels);
        }
      }
    }
  }
}

// The longest channels of each kind of launch, and the next ones, which may not pack; channels too
// few for one block each have clusters of two and four.
TEST(CudaLayer, EqualsTheCpuWhereLaunchesChange) {
  torch::manual_seed(0);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 8, 1024},
                                                             {3, 8, 683},
                                                             {3, 8, 688},
                                                             {2, 96, 4096},
                                                             {3, 96, 2731},
                                                             {3, 96, 2736},
                                                             {2, 96, 65536},
                                                             {3, 96, 43691},
                                                             {3, 96, 43696},
                                                             {2, 95, 8192},
                                                             {3, 48, 10928},
                                                             {2, 48, 131072},
                                                             {3, 48, 87384},
                                                             {3, 24, 10928},
                                                             {2, 24, 131072},
                                                             {2, 23, 8192}}) {
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      for (int i : {0, 1}) {
        const torch::Tensor x = layouts()[i].of(torch::randn(shape).to(type));
        // A bfloat16 at a bin's edge takes its equals along.
        const double off_by_rounding = type == torch::kFloat ? 1e-5 : 1e-4;
        expect_same(x, "auto", describe(x, layouts()[i]), off_by_rounding);
      }
    }
  }
}

TEST(CudaLayer, EqualsTheCpuOnTiesInLongChannelsOfOneLaunch) {
  torch::manual_seed(0);
  for (const int64_t channels : {96, 48, 24}) {
    const std::vector<int64_t> shape = {20, channels, 28, 28};
    for (const torch::Tensor& values :
         {drawn(shape, Distribution::ties), torch::randn(shape).clamp_min(0)}) {
      for (const auto type : {torch::kFloat, torch::kBFloat16}) {
        for (int i : {0, 1}) {
          const torch::Tensor x = layouts()[i].of(values.to(type));
          expect_same(x, "auto", describe(x, layouts()[i]), 2e-4);
        }
      }
    }
  }
}

// The values below each bin of the contexts, where three quarters are one: in every kind of launch.
TEST(CudaLayer, CountsTiesAsTheCpu) {
  torch::manual_seed(0);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {20, 8, 3, 3}, {30, 8, 7, 7}, {40, 48, 16, 16}, {20, 24, 24, 24}, {2000, 8, 5, 5}}) {
    const double n = static_cast<double>(shape[0] * shape[2] * shape[3]);
    for (const double background : {-0.6, 0.0, 0.31}) {
      const torch::Tensor values = torch::where(
          torch::rand(shape) < 0.75, torch::full(shape, background), torch::randn(shape));
      for (const char* algorithm : {"auto", "exact"}) {
        for (int i : {0, 1}) {
          const torch::Tensor x = layouts()[i].of(values), grad = torch::randn_like(x);
          const LayerRun cpu(x, grad, algorithm), gpu(on_gpu(x), on_gpu(grad), algorithm);
          const torch::Tensor ahead = gpu.context.cpu().cumsum(1) - cpu.context.cumsum(1);
          EXPECT_LE(ahead.abs().max().item<double>() / 65536, 6 + n / 400)
              << describe(x, layouts()[i]) << " " << algorithm << " " << background;
        }
      }
    }
  }
}

TEST(CudaLayer, EqualsTheCpuOverDistributions) {
  for (const Distribution distribution : kDistributions) {
    for (const char* algorithm : {"exact", "binned"}) {
      for (const auto& shape :
           std::vector<std::vector<int64_t>>{{40, 3, 7, 9}, {40, 4, 8, 8}, {100, 5, 20, 20}}) {
        for (int i : {0, 1}) {
          const torch::Tensor x = layouts()[i].of(drawn(shape, distribution).to(torch::kFloat));
          expect_same(
              x, algorithm,
              std::string(name(distribution)) + " " + algorithm + " " + describe(x, layouts()[i]),
              // Far from 0 values tie, and those at the mean go to one side together.
              distribution == Distribution::far_mean ? 2e-3 : 2e-4);
        }
      }
    }
  }
}

TEST(CudaLayer, NotFiniteChannelsAreNan) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{600, 4, 2}, {40, 48, 256}, {200001, 4, 2}}) {
    torch::Tensor x = torch::randn(shape);
    x[5][1][0] = NAN;
    x[7][2][1] = INFINITY;
    for (int i : {0, 1}) {
      const torch::Tensor gpu = on_gpu(layouts()[i].of(x));
      const auto y = std::get<0>(ops::quantile_layer(gpu));
      for (const int64_t c : {0, 3}) EXPECT_FALSE(y.select(1, c).isnan().any().item<bool>());
      for (const int64_t c : {1, 2}) EXPECT_TRUE(y.select(1, c).isnan().all().item<bool>());
    }
  }
}

// Squares that no float can hold, in every kind of launch: one block, clusters, passes.
TEST(CudaLayer, HugeChannelsAreNotNan) {
  torch::manual_seed(0);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {20, 4, 3}, {600, 4, 2}, {40, 48, 256}, {3, 24, 10928}, {200001, 4, 2}}) {
    for (const double scale : {1e17, 1e19, 1e30, 1e37}) {
      for (int i : {0, 1}) {
        const torch::Tensor x = layouts()[i].of((torch::randn(shape) * scale).to(torch::kFloat));
        const std::string what = describe(x, layouts()[i]) + " " + std::to_string(scale);
        const auto [y, stats, context] = ops::quantile_layer(x, {}, {.track = true});
        const auto [gpu_y, gpu_stats, gpu_context] =
            ops::quantile_layer(on_gpu(x), {}, {.track = true});
        EXPECT_LE(differing(gpu_y, y, 1e-3), 0.02) << what;
        EXPECT_LE(relative_error(gpu_stats.select(1, 1), stats.select(1, 1)), 1e-5) << what;
      }
    }
  }
}

// Sums about the first value, an outlier, tell nearly nothing of the variance.
TEST(CudaLayer, NearlyConstantChannelsKeepTheirVariance) {
  torch::manual_seed(0);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {600, 4, 2}, {40, 48, 256}, {3, 24, 10928}, {200001, 4, 2}}) {
    for (const double outlier : {1e3, -1e6}) {
      for (int i : {0, 1}) {
        torch::Tensor values = torch::randn(shape) * 1e-3;
        values.select(0, 0).fill_(0).select(1, 0).fill_(outlier);
        const torch::Tensor x = layouts()[i].of(values);
        const std::string what = describe(x, layouts()[i]) + " " + std::to_string(outlier);
        const auto [y, stats, context] = ops::quantile_layer(x, {}, {.track = true});
        const auto [gpu_y, gpu_stats, gpu_context] =
            ops::quantile_layer(on_gpu(x), {}, {.track = true});
        EXPECT_LE(relative_error(gpu_stats.select(1, 1), stats.select(1, 1)), 1e-5) << what;
        EXPECT_TRUE(gpu_context.sum(1).cpu().equal(context.sum(1))) << what;
      }
    }
  }
}

TEST(CudaLayer, RepeatsBitForBit) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {64, 32, 16, 16}, {64, 64, 16, 16}, {64, 8, 16, 16}, {128, 512}, {32, 16, 4, 4}}) {
    for (int i : {0, 1}) {
      const torch::Tensor x = on_gpu(layouts()[i].of(torch::randn(shape)));
      const torch::Tensor grad = torch::randn_like(x);
      const LayerRun first(x, grad, "auto");
      for (int round = 0; round < 5; ++round) {
        const LayerRun again(x, grad, "auto");
        EXPECT_TRUE(again.y.equal(first.y));
        EXPECT_TRUE(again.grad_x.equal(first.grad_x));
        EXPECT_TRUE(again.affine.equal(first.affine));
        EXPECT_TRUE(again.context.equal(first.context));
      }
    }
  }
}

}  // namespace
}  // namespace qact::tests
