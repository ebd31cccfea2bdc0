// Contexts over several ranks on the GPU: the CPU's codes, tables, statistics and contexts, to the
// last bit, for one rank, and for ranks as threads that share the GPU.
#include <gtest/gtest.h>

#include "qact/ops/quantile_layer_world_impl.h"
#include "tests/cuda/cases.h"
#include "tests/nn/thread_group.h"

namespace qact::tests {
namespace {

using core::testing::Distribution;

struct WorldRun {
  torch::Tensor y, code, table, stats, context, grad_x, affine;

  WorldRun(const torch::Tensor& x, const torch::Tensor& grad, const char* algorithm,
           const std::string& group = "") {
    const auto vector = [&](double first, double step) {
      return (first + step * torch::arange(x.size(1)).remainder(7))
          .to(torch::kFloat)
          .to(x.device());
    };
    const ops::LayerAffine affines{vector(1.25, -0.5), vector(-0.3, 0.2), vector(0.75, 0.5),
                                   vector(0.1, -0.4)};
    const ops::LayerOptions options{.quantile = {.algorithm = algorithm}, .track = true};
    const auto [result, kept] = ops::world_layer_forward(x, affines, options, true, group);
    y = result.y, stats = result.stats, context = result.context;
    code = kept.code, table = kept.table;
    std::tie(grad_x, affine) = ops::world_layer_backward(grad, kept, affines, options, group);
  }
};

void expect_cpus(const WorldRun& gpu, const WorldRun& cpu, const std::string& what) {
  const auto equal = [&](const torch::Tensor& a, const torch::Tensor& b, const char* name) {
    EXPECT_EQ(differing(a, b, 0), 0) << what << ", " << name;
  };
  equal(gpu.code, cpu.code, "code");
  EXPECT_TRUE(torch::equal(gpu.table.cpu(), cpu.table)) << what << ", table";
  equal(gpu.stats, cpu.stats, "stats");
  equal(gpu.context, cpu.context, "context");
  equal(gpu.y, cpu.y, "y");
  EXPECT_LE(relative_error(gpu.grad_x, cpu.grad_x), gpu.y.element_size() == 2 ? 4e-3 : 1e-4)
      << what;
  EXPECT_LE(relative_error(gpu.affine, cpu.affine), 1e-5) << what;
}

// `values` in all types and layouts.
void expect_cpus(const torch::Tensor& values, const char* algorithm, const std::string& what) {
  for (const torch::ScalarType type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      const torch::Tensor x = values.to(type).contiguous(format);
      const torch::Tensor grad = torch::randn(x.sizes()).to(type).contiguous(format);
      expect_cpus(WorldRun(on_gpu(x), on_gpu(grad), algorithm), WorldRun(x, grad, algorithm),
                  what + " " + toString(type) + " " + algorithm);
    }
  }
}

// Gathered, binned with two counts to a word, and with one.
TEST(CudaWorld, EqualsTheCpu) {
  for (const auto& shape : {std::vector<int64_t>{6, 3, 1, 5}, {10, 40, 17, 9}, {60, 1, 33, 34}}) {
    for (const Distribution distribution : core::testing::kDistributions) {
      const torch::Tensor values = drawn(shape, distribution);
      const std::string what = std::string(core::testing::name(distribution)) + " of " +
                               std::to_string(values.numel() / values.size(1));
      expect_cpus(values, "auto", what);
      if (shape[0] == 10) expect_cpus(values, "exact", what);
    }
  }
}

// Of channels of which the first are ranked in their image: y, the gradient of x, and those of the
// affine parameters. Codes of both halves lie in orders of their own.
struct HalvesRun {
  torch::Tensor y, grad_x;
  std::vector<torch::Tensor> affine;

  // layer(x, vectors).
  template <class Layer>
  HalvesRun(const torch::Tensor& values, const torch::Tensor& grad_y, const Layer& layer) {
    const torch::Tensor x = on_gpu(values).requires_grad_();
    std::vector<torch::Tensor> vectors;
    for (int i = 1; i < 5; ++i) {
      const torch::Tensor vector = (torch::arange(x.size(1)).to(torch::kFloat) * 0.3 * i - 0.5);
      vectors.push_back(vector.to(torch::kCUDA).requires_grad_());
    }
    const torch::Tensor out = layer(x, vectors);
    out.backward(on_gpu(grad_y));
    y = out.detach(), grad_x = x.grad();
    for (const torch::Tensor& vector : vectors) affine.push_back(vector.grad());
  }
};

ops::LayerAffine rows_of(const std::vector<torch::Tensor>& v, int64_t first, int64_t count) {
  const auto rows = [&](int i) { return v[i].narrow(0, first, count); };
  return {rows(0), rows(1), rows(2), rows(3)};
}

// Images of 30 values, which are computed again in the backward pass, and of 1,200, which are not.
TEST(CudaWorld, HalvesAreEachAlone) {
  constexpr int64_t kImages = 2;
  for (const auto& shape : {std::vector<int64_t>{6, 5, 5, 6}, {6, 5, 30, 40}, {1, 5, 30, 40}}) {
    const torch::Tensor values = drawn(shape, Distribution::ties);
    for (const torch::ScalarType type : {torch::kFloat, torch::kHalf}) {
      for (const auto of_x : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
        for (const auto of_grad :
             {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
          const torch::Tensor x = values.to(type).contiguous(of_x);
          const torch::Tensor grad_y = torch::randn(shape).to(type).contiguous(of_grad);
          const HalvesRun found(x, grad_y, [&](const auto& in, const auto& v) {
            return ops::quantile_layer_world(in, rows_of(v, 0, 5), {.scope = {kImages, 0}}, "").y;
          });
          const HalvesRun alone(x, grad_y, [&](const auto& in, const auto& v) {
            const auto images = ops::quantile_layer(
                in.narrow(1, 0, kImages), rows_of(v, 0, kImages), {.scope = {kImages, 0}});
            const auto others = ops::quantile_layer_world(in.narrow(1, kImages, 5 - kImages),
                                                          rows_of(v, kImages, 5 - kImages), {}, "");
            return torch::cat({std::get<0>(images), others.y}, 1);
          });
          EXPECT_EQ(differing(found.y, alone.y, 0), 0);
          EXPECT_EQ(differing(found.grad_x, alone.grad_x, 0), 0);
          for (int i = 0; i < 4; ++i) {
            EXPECT_EQ(differing(found.affine[i], alone.affine[i], 0), 0) << i;
          }
        }
      }
    }
  }
}

TEST(CudaWorld, RanksChangeNoBit) {
  const torch::Tensor x = drawn({12, 20, 16, 16}, Distribution::ties).to(torch::kFloat);
  const torch::Tensor grad = torch::randn(x.sizes());
  const WorldRun whole(x, grad, "auto");
  const std::vector<int64_t> images = {5, 0, 1, 6};
  const auto xs = x.split_with_sizes(images), grads = grad.split_with_sizes(images);
  std::vector<torch::Tensor> y(4), grad_x(4), affine(4);
  on_ranks(4, [&](int rank, const std::string& group) {
    const WorldRun own(on_gpu(xs[rank].contiguous()), on_gpu(grads[rank].contiguous()), "auto",
                       group);
    torch::cuda::synchronize();
    y[rank] = own.y.cpu(), grad_x[rank] = own.grad_x.cpu(), affine[rank] = own.affine.cpu();
    EXPECT_EQ(differing(own.stats, whole.stats, 0), 0);
    EXPECT_EQ(differing(own.context, whole.context, 0), 0);
  });
  EXPECT_TRUE(torch::equal(torch::cat(y), whole.y));
  EXPECT_LE(relative_error(torch::cat(grad_x), whole.grad_x), 1e-4);
  EXPECT_LE(relative_error(torch::stack(affine).sum(0), whole.affine), 1e-5);
}

TEST(CudaWorld, RefusesFloat64) {
  const torch::Tensor x = torch::randn({8, 3, 20}, torch::kCUDA);
  EXPECT_THROW(ops::quantile_layer_world(x.to(torch::kDouble), {}, {}, ""), c10::Error);
}

}  // namespace
}  // namespace qact::tests
