// The module on the GPU against itself on the CPU: every scope, what it tracks in training, and
// every mode of inference, with gradients.
#include <gtest/gtest.h>

#include "qact/nn/quantile_activation.h"
#include "tests/cuda/cases.h"

namespace qact::tests {
namespace {

using nn::ContextMode;
using nn::QuantileActivation;
using nn::QuantileActivationOptions;

constexpr int64_t kFeatures = 6;

struct Pass {
  torch::Tensor y, grad_x;
  std::vector<torch::Tensor> parameters;

  Pass(QuantileActivation& layer, const torch::Tensor& values, const torch::Tensor& grad) {
    const torch::Tensor x = values.detach().requires_grad_();
    layer->zero_grad();
    y = layer(x);
    y.backward(grad);
    grad_x = x.grad();
    for (const torch::Tensor& parameter : layer->parameters()) {
      parameters.push_back(parameter.grad().clone());
    }
  }
};

void expect_same(const Pass& gpu, const Pass& cpu, const std::string& what) {
  EXPECT_EQ(gpu.y.strides(), cpu.y.strides()) << what;
  EXPECT_LE(differing(gpu.y.detach(), cpu.y.detach(), 2e-3), 2e-3) << what;
  EXPECT_LE(relative_error(gpu.grad_x, cpu.grad_x), 0.05) << what;
  for (size_t i = 0; i < cpu.parameters.size(); ++i) {  // sums whose terms nearly cancel
    EXPECT_LE(relative_error(gpu.parameters[i], cpu.parameters[i]), 0.1) << what << ", " << i;
  }
}

void expect_same_state(const QuantileActivation& gpu, const QuantileActivation& cpu,
                       const std::string& what) {
  const auto buffers = cpu->named_buffers();
  for (const auto& entry : gpu->named_buffers()) {
    EXPECT_TRUE(entry.value().is_cuda()) << what << ", " << entry.key();
    if (entry.key() == "context") {
      const torch::Tensor counts = buffers[entry.key()];
      EXPECT_TRUE(entry.value().sum(1).cpu().equal(counts.sum(1))) << what;
      EXPECT_LE(differing(entry.value(), counts, 65536.0 * 2), 0.04) << what;
    } else {
      EXPECT_LE(differing(entry.value(), buffers[entry.key()], 1e-4), 0)
          << what << ", " << entry.key();
    }
  }
}

TEST(CudaModule, EqualsTheCpuInEveryScopeAndMode) {
  const QuantileActivationOptions plain(kFeatures);
  const std::vector<std::pair<const char*, QuantileActivationOptions>> cases = {
      {"batch", plain},
      {"half image", QuantileActivationOptions(plain).image_share(0.5)},
      {"image", QuantileActivationOptions(plain).scope(nn::Scope::image)},
      {"groups", QuantileActivationOptions(plain).scope(nn::Scope::group).group_images(4)},
      {"world", QuantileActivationOptions(plain).scope(nn::Scope::world)},
      {"half image, half world",
       QuantileActivationOptions(plain).scope(nn::Scope::world).image_share(0.5)},
      {"no norms", QuantileActivationOptions(plain).norm_in(false).norm_out(false)},
      {"exact, fixed input scale",
       QuantileActivationOptions(plain).algorithm("exact").affine_in(false)},
  };
  for (const auto& [name, options] : cases) {
    for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      torch::manual_seed(7);
      QuantileActivation cpu(options), gpu(options);
      gpu->to(torch::kCUDA);
      const auto compare = [&](const char* mode) {
        const torch::Tensor x = (torch::randn({10, kFeatures, 9, 8}) * 2 + 0.3).contiguous(format);
        const torch::Tensor grad = torch::randn(x.sizes()).contiguous(format);
        const std::string what =
            std::string(name) + ", " + mode + (x.is_contiguous() ? "" : ", channels-last");
        expect_same(Pass(gpu, on_gpu(x), on_gpu(grad)), Pass(cpu, x, grad), what);
        expect_same_state(gpu, cpu, what);
      };
      for (int step = 0; step < 2; ++step) compare("training");
      cpu->eval(), gpu->eval();
      for (const auto& [mode, mode_name] : {std::pair{ContextMode::batch, "batch"},
                                            {ContextMode::tracked, "tracked"},
                                            {ContextMode::prior, "prior"},
                                            {ContextMode::stream, "stream"}}) {
        nn::set_context_mode(*cpu, mode), nn::set_context_mode(*gpu, mode);
        compare(mode_name);
      }
    }
  }
}

}  // namespace
}  // namespace qact::tests
