// The fused layer in training, at the shapes of a ResNet on 32 x 32 images.
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "bench/layers.h"
#include "qact/core/reference.h"
#include "qact/ops/quantile_layer.h"

namespace qact::bench {
namespace {

std::vector<double> channel(const torch::Tensor& x, int64_t c) {
  const torch::Tensor flat = x.detach().select(1, c).to(torch::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void require(bool holds, const char* what, double value) {
  if (holds) return;
  throw std::runtime_error(std::string("[layer] expected ") + what + " to agree with the oracle, " +
                           "got an error of " + std::to_string(value));
}

// Output and gradient of one channel against the oracle, which is quadratic in the size of
// the context: a few images are enough.
void validate(const torch::Tensor& all) {
  const int64_t per_image = all.numel() / all.size(0) / all.size(1);
  const int64_t images = std::min<int64_t>(all.size(0), std::max<int64_t>(1, 2048 / per_image));
  const torch::Tensor x = all.narrow(0, 0, images).detach().requires_grad_(true);
  const torch::Tensor grad = torch::randn_like(x);
  const torch::Tensor y = nn::QuantileActivation(x.size(1))->forward(x);
  y.backward(grad);

  const auto values = channel(x, 0), found = channel(y, 0), found_grad = channel(x.grad(), 0);
  const auto expected = core::reference::layer(values, {});
  const auto gradient = core::reference::layer_gradient(values, channel(grad, 0), {});
  const double rounding = x.scalar_type() == torch::kFloat ? 0 : 0.02;
  const double level = 0.01 / std::sqrt(expected.var_out);
  double off = 0, error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    off = std::max(off, std::abs(found[i] - expected.y[i]) / level);
    error += std::pow(found_grad[i] - gradient.x[i], 2);
    norm += std::pow(gradient.x[i], 2);
  }
  require(off <= 2.5 + rounding / level, "outputs", off);
  require(std::sqrt(error / norm) <= 0.05 + rounding, "gradients", std::sqrt(error / norm));
}

// What the forward pass leaves for the backward pass. BatchNorm2d + ReLU keep the input
// and the output.
void count_saved(const torch::Tensor& x, Report& report) {
  const auto [y, level, density, stats, context] = ops::quantile_layer_forward(
      x, {}, {}, {}, {}, 1e-5, 100, 100.0, 0.5, 0.5, "auto", false, true);
  const double elements = static_cast<double>(x.numel());
  const double tables = static_cast<double>(density.nbytes() + stats.nbytes());
  char line[160];
  std::snprintf(line, sizeof line,
                "         saved for backward: %.2f bytes per element (input %zu, level %zu, "
                "tables %.2f); peer %.2f",
                static_cast<double>(x.nbytes() + level.nbytes()) / elements + tables / elements,
                x.element_size(), level.element_size(), tables / elements,
                2.0 * static_cast<double>(x.element_size()));
  report.say(line);
}

void time_layer(const torch::Tensor& x, const char* dtype, const char* layout, int repeats,
                Report& report) {
  validate(x);
  const auto times = time_side_by_side(x, repeats);
  const char* passes[] = {"forward", "backward", "both"};
  for (int pass = 0; pass < 3; ++pass) {
    report.add({"layer", x.sizes().vec(), dtype, layout, passes[pass], times[0][pass], kPeer,
                times[1][pass], ""});
  }
}

}  // namespace

void layer(const Settings& settings, Report& report) {
  torch::manual_seed(0);
  const std::vector<std::vector<int64_t>> shapes = {
      {128, 64, 32, 32}, {128, 128, 16, 16}, {128, 256, 8, 8}, {128, 512, 4, 4}};
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    time_layer(x, "float32", "contiguous", settings.repeats, report);
    count_saved(x, report);
  }
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    time_layer(x.contiguous(torch::MemoryFormat::ChannelsLast), "float32", "channels_last",
               settings.repeats, report);
    time_layer(x.to(torch::kBFloat16), "bfloat16", "contiguous", settings.repeats, report);
  }
}

}  // namespace qact::bench
