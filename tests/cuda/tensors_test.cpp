// Every tensor of every operator is checked on the GPU too: where it lies, its type and its layout.
#include <gtest/gtest.h>

#include "qact/nn/quantile_activation.h"
#include "qact/ops/context.h"
#include "qact/ops/layer_track.h"
#include "tests/cuda/cases.h"
#include "tests/ops/calls.h"

namespace qact::tests {
namespace {

std::string refusal(const OperatorCall& call) {
  return message_of([&] {
    torch::jit::Stack stack = call.arguments;
    call.op().callBoxed(&stack);
  });
}

void expect_one_device(torch::Device here, torch::Device there) {
  for (const OperatorCall& call : operator_calls(here)) {
    EXPECT_EQ(refusal(call), "") << call.name;
    for (const size_t i : call.tensors()) {
      if (call.argument(i) == call.lead) continue;
      EXPECT_EQ(refusal(call.with(i, call.tensor(i).to(there))),
                "[" + call.says + "] expected " + call.argument(i) + " on " + here.str() + ", as " +
                    call.lead + ", got " + there.str());
    }
  }
}

TEST(CudaTensors, AreOnOneDevice) {
  const torch::Device gpu(torch::kCUDA, 0);
  expect_one_device(gpu, torch::kCPU);
  expect_one_device(torch::kCPU, gpu);
  if (torch::cuda::device_count() > 1) expect_one_device(gpu, torch::Device(torch::kCUDA, 1));
  // No kernel saw any of them: after an illegal access nothing would work any more.
  EXPECT_EQ(torch::ones({4}, gpu).sum().item<double>(), 4);
}

TEST(CudaTensors, ALayerLeftOnTheCpuIsNamed) {
  nn::QuantileActivation layer(3);
  EXPECT_EQ(message_of([&] { layer->forward(torch::randn({4, 3}, torch::kCUDA)); }),
            "[quantile_layer] expected weight_in on cuda:0, as x, got cpu");
  layer->eval();
  EXPECT_EQ(message_of([&] { layer->forward(torch::randn({4, 3}, torch::kCUDA)); }),
            "[quantile_apply] expected quantiles on cuda:0, as x, got cpu");
}

// The kernels compute in float32, and say so.
TEST(CudaTensors, Float64IsRefused) {
  for (const OperatorCall& call : operator_calls(torch::kCUDA)) {
    if (call.lead != "x" || call.name == "quantiles") continue;  // quantiles sorts in float64
    OperatorCall wide = call;
    for (const size_t i : call.tensors()) {
      const std::string& name = call.argument(i);
      if (name != "x" && name != "x_images" && name != "grad_y") continue;
      wide = wide.with(i, call.tensor(i).to(torch::kDouble));
    }
    const std::string said = refusal(wide);
    EXPECT_TRUE(said.starts_with("[" + call.says +
                                 "] expected float32, bfloat16 or float16 on CUDA, got float64 of "
                                 "shape ("))
        << call.name << ": " << said;
    EXPECT_TRUE(
        said.ends_with("): convert it with x.to(float32), or move it to the CPU, which "
                       "computes float64"))
        << call.name << ": " << said;
  }
}

TEST(CudaTensors, TrackReadsStridedTablesAndWritesContiguousOnes) {
  const auto on = torch::dtype(torch::kFloat).device(torch::kCUDA);
  torch::Tensor mean_in = torch::zeros({6}, on), var_in = torch::ones({6}, on);
  torch::Tensor mean_out = torch::zeros({6}, on), var_out = torch::ones({6}, on);
  torch::Tensor context = ops::context_standard_normal(6).cuda();
  torch::Tensor batches = torch::zeros({}, on.dtype(torch::kLong));
  const torch::Tensor stats = torch::rand({6, 8}, on.dtype(torch::kDouble));
  const torch::Tensor batch = ops::context_build(torch::randn({100, 6, 3}, on));
  const auto track = [&](torch::Tensor running, const torch::Tensor& s, const torch::Tensor& b) {
    ops::layer_track({mean_in, var_in, mean_out, var_out, running, batches},
                     {s, b, 0.1, 300, 1024});
    return running;
  };
  const torch::Tensor expected = track(context.clone(), stats, batch), means = mean_in.clone();
  mean_in.zero_();
  const Layout& stepped = layouts()[3];
  EXPECT_TRUE(track(context.clone(), stepped.of(stats), stepped.of(batch)).equal(expected));
  EXPECT_TRUE(mean_in.equal(means));
  const torch::Tensor one = ops::context_standard_normal(1).cuda();
  EXPECT_EQ(message_of([&] { track(one.expand({6, 256}), stats, batch); }),
            "[layer_track] expected context to be contiguous, since it is written in place, got "
            "int64 of shape (6,256) with strides (0,1)");
  EXPECT_TRUE(one.cpu().equal(ops::context_standard_normal(1)));
}

}  // namespace
}  // namespace qact::tests
