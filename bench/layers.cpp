#include "bench/layers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "qact/core/reference.h"

namespace qact::bench {
namespace {

std::vector<double> channel(const torch::Tensor& x, int64_t c) {
  const torch::Tensor flat = x.detach().select(1, c).to(torch::kCPU, torch::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void require(bool holds, const char* what, double value) {
  if (holds) return;
  throw std::runtime_error(std::string("[bench] expected ") + what + " to agree with the oracle, " +
                           "got an error of " + std::to_string(value));
}

}  // namespace

// The oracle is quadratic in the size of the context: a few images are enough.
void validate(const torch::Tensor& all) {
  const int64_t per_image = all.numel() / all.size(0) / all.size(1);
  const int64_t images = std::min<int64_t>(all.size(0), std::max<int64_t>(1, 2048 / per_image));
  const torch::Tensor x = all.narrow(0, 0, images).detach().requires_grad_(true);
  const torch::Tensor grad = torch::randn_like(x);
  nn::QuantileActivation layer(x.size(1));
  layer->to(x.device());
  const torch::Tensor y = layer->forward(x);
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

std::vector<std::vector<double>> time_side_by_side(const torch::Tensor& x, int repeats) {
  validate(x);
  const torch::Tensor grad = torch::randn_like(x);
  return interleave({training_step(nn::QuantileActivation(x.size(1)), x, grad),
                     training_step(BatchNormRelu(x.size(1)), x, grad)},
                    repeats);
}

}  // namespace qact::bench
