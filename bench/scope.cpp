// The fused layer in training where all or half of its channels are ranked in their own image, next
// to InstanceNorm2d + ReLU.
#include <cmath>
#include <stdexcept>

#include "bench/layers.h"
#include "qact/core/reference.h"

namespace qact::bench {
namespace {

namespace reference = core::reference;

struct InstanceNormReluImpl : torch::nn::Module {
  explicit InstanceNormReluImpl(int64_t channels)
      : norm(register_module(
            "norm",
            torch::nn::InstanceNorm2d(torch::nn::InstanceNorm2dOptions(channels).affine(true)))) {}
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm->forward(x)); }
  torch::nn::InstanceNorm2d norm;
};
TORCH_MODULE(InstanceNormRelu);

std::vector<double> values(const torch::Tensor& x) {
  const torch::Tensor flat = x.detach().to(torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// How far the one lies from the other, over the other's norm.
double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    error += std::pow(found[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(error / norm);
}

// Output and gradient of a few images' contexts against the oracle, which is given every value.
void validate_images(const nn::QuantileActivationOptions& options, const torch::Tensor& input) {
  nn::QuantileActivation layer(options);
  const torch::Tensor x = input.detach().requires_grad_(true), grad = torch::randn_like(x);
  const torch::Tensor y = layer->forward(x);
  y.backward(grad);
  const auto require = [&](const char* term, double error, double within) {
    if (error <= within) return;
    throw std::runtime_error(std::string("[scope] expected ") + term +
                             " of an image to agree with the oracle within " +
                             std::to_string(within) + ", got " + std::to_string(error));
  };
  const int64_t last = layer->image_channels() - 1;
  for (const auto& [image, channel] :
       {std::pair{int64_t{0}, int64_t{0}}, {x.size(0) / 2, last / 2}, {x.size(0) - 1, last}}) {
    const auto of = [&, i = image, c = channel](const torch::Tensor& all) {
      return values(all.select(0, i).select(0, c));
    };
    const reference::LayerResult oracle = reference::layer(of(x), {});
    const auto gradient = reference::layer_gradient(of(x), of(grad), {});
    require("y", distance(of(y), oracle.y), 0.01);
    require("grad_x", distance(of(x.grad()), gradient.x), 0.02);
  }
}

void time_scope(const char* what, double image_share, const torch::Tensor& x, const char* layout,
                const Settings& settings, Report& report) {
  const int64_t channels = x.size(1);
  const auto options = nn::QuantileActivationOptions(channels).image_share(image_share);
  validate_images(options, x);
  const torch::Tensor grad = torch::randn_like(x);
  const auto times = interleave({training_step(nn::QuantileActivation(options), x, grad),
                                 training_step(InstanceNormRelu(channels), x, grad)},
                                settings.repeats);
  const char* passes[] = {"forward", "backward", "both"};
  for (int pass = 0; pass < 3; ++pass) {
    report.add({what, x.sizes().vec(), "float32", layout, passes[pass], times[0][pass],
                "InstanceNorm2d + ReLU", times[1][pass], ""});
  }
}

}  // namespace

void scope(const Settings& settings, Report& report) {
  torch::manual_seed(0);
  const std::vector<std::vector<int64_t>> shapes = {
      {128, 64, 32, 32}, {128, 128, 16, 16}, {128, 256, 8, 8}, {128, 512, 4, 4}};
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    const torch::Tensor last = x.contiguous(torch::MemoryFormat::ChannelsLast);
    time_scope("layer_image", 1.0, x, "contiguous", settings, report);
    time_scope("layer_half", 0.5, x, "contiguous", settings, report);
    time_scope("layer_image", 1.0, last, "channels_last", settings, report);
  }
}

}  // namespace qact::bench
