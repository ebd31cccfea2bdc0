// What only a GPU can show: graphs, streams side by side, tensors of more than 2^31 values, NCCL.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "qact/dist/nccl.h"
#include "qact/nn/quantile_activation.h"
#include "qact/ops/quantile_layer.h"
#include "qact/ops/quantile_layer_world.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

TEST(CudaHardware, ReplaysInAGraph) {
  nn::QuantileActivation layer(16);
  layer->to(torch::kCUDA);
  torch::Tensor x = torch::randn({32, 16, 8, 8}, torch::kCUDA).requires_grad_();
  const torch::Tensor grad = torch::randn_like(x);
  const auto stream = c10::cuda::getStreamFromPool();
  at::cuda::CUDAGraph graph;
  torch::Tensor y, dx;
  {
    c10::cuda::CUDAStreamGuard guard(stream);
    for (int i = 0; i < 3; ++i) {
      y = layer->forward(x);
      dx = torch::autograd::grad({y}, {x}, {grad})[0];
    }
    stream.synchronize();
    graph.capture_begin();
    y = layer->forward(x);
    dx = torch::autograd::grad({y}, {x}, {grad})[0];
    graph.capture_end();
  }
  for (int round = 0; round < 3; ++round) {
    torch::NoGradGuard no_grad;
    x.copy_(torch::randn({32, 16, 8, 8}, torch::kCUDA) * (round + 1));
    torch::cuda::synchronize();
    graph.replay();
    torch::cuda::synchronize();
    const auto expected = std::get<0>(ops::quantile_layer(
        x, {layer->weight_in, layer->bias_in, layer->weight_out, layer->bias_out}));
    EXPECT_TRUE(y.equal(expected));
  }
}

TEST(CudaHardware, AWorldsContextsAreNotCaptured) {
  const torch::Tensor x = torch::randn({8, 3, 20}, torch::kCUDA);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  EXPECT_THROW(ops::quantile_layer_world(x, {}, {}, ""), c10::Error);
  graph.capture_end();
}

TEST(CudaHardware, TwoStreamsAtOnce) {
  const torch::Tensor x = torch::randn({64, 32, 16, 16}, torch::kCUDA);
  const auto expected = std::get<0>(ops::quantile_layer(x));
  torch::cuda::synchronize();
  for (int round = 0; round < 20; ++round) {
    torch::Tensor y[2];
    for (int s : {0, 1}) {
      c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(false, 0));
      y[s] = std::get<0>(ops::quantile_layer(x));
    }
    torch::cuda::synchronize();
    EXPECT_TRUE(y[0].equal(expected));
    EXPECT_TRUE(y[1].equal(expected));
  }
}

TEST(CudaHardware, MoreThan2To31Elements) {
  const int64_t n = (int64_t{1} << 31) / (4 * 32 * 32) + 33;
  const torch::Tensor x =
      torch::randn({n, 4, 32, 32}, torch::dtype(torch::kBFloat16).device(torch::kCUDA));
  const auto y = std::get<0>(ops::quantile_layer(x));
  const auto last = y.narrow(0, n - 64, 64).to(torch::kFloat);
  EXPECT_NEAR(last.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(last.std().item<double>(), 1, 0.02);
}

// One rank: all that a machine with one GPU can show of NCCL is that it takes every round's type.
TEST(CudaHardware, NcclReducesEveryRound) {
  const auto nccl = dist::make_nccl(c10::make_intrusive<c10d::HashStore>(), 0, 1);
  if (!nccl) GTEST_SKIP() << "built without nccl.h";
  for (const auto& [type, by] : {std::pair{torch::kDouble, c10d::ReduceOp::MAX},
                                 {torch::kDouble, c10d::ReduceOp::SUM},
                                 {torch::kLong, c10d::ReduceOp::SUM},
                                 {torch::kInt, c10d::ReduceOp::SUM}}) {
    const torch::Tensor numbers = torch::arange(1000, torch::dtype(type).device(torch::kCUDA));
    std::vector<at::Tensor> reduced = {numbers.clone()};
    c10d::AllreduceOptions options;
    options.reduceOp = by;
    nccl->allreduce(reduced, options)->wait();
    EXPECT_TRUE(torch::equal(reduced[0], numbers));
  }
  nccl->shutdown();
}

}  // namespace
}  // namespace qact::tests
