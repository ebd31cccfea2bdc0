#include "bench/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <stdexcept>

#include "bench/oracle_density.h"
#include "qact/core/reference.h"
#include "qact/ops/checks.h"

namespace qact::bench {
namespace {

namespace reference = core::reference;

// How far each term may lie from the oracle's; tests/core/tolerance.h says what the arithmetic
// earns. Sums are measured by the sum of their terms' sizes, as they cancel themselves.
struct Tolerance {
  double y;            // in levels, besides that of a bin
  double grad_x;       // of its norm
  double sum;          // bias_out, weight_out
  double density_sum;  // bias_in, weight_in
  double stored;       // relative, of each value

  explicit Tolerance(const torch::Tensor& x)
      : y(0.01),
        grad_x(x.is_cuda() ? 0.02 : 0.008),
        sum(x.is_cuda() ? 1e-5 : 1e-6),
        density_sum(x.is_cuda() ? 0.01 : 0.002),
        stored(x.scalar_type() == torch::kFloat ? 1e-7 : 0x1p-8) {}
};

class Validation {
 public:
  Validation(const nn::QuantileActivationOptions& options, const torch::Tensor& x)
      : x_(x.detach().requires_grad_(true)),
        // With a mean and a trend, so that no sum over a channel vanishes.
        grad_((torch::randn_like(x) + 0.25 * x.detach() + 0.5).to(x.scalar_type())),
        tolerance_(x),
        layer_(options) {
    layer_->to(x.device());
    y_ = layer_->forward(x_);
    y_.backward(grad_);
  }

  // Output and gradient of a norm: the one has mean 0 and variance 1, the other no mean.
  void check_every_channel() const {
    const torch::Tensor y = channels_first(y_), dx = channels_first(x_.grad());
    const double rounding = 1e-4 + tolerance_.stored / 4;
    const torch::Tensor mean = y.mean(1, /*keepdim=*/true), square = (y - mean).square().mean(1);
    require_all("mean of y", mean.flatten(), rounding);
    require_all("variance of y", square - 1, 1e-3 + 2 * tolerance_.stored);
    require_all("mean of grad_x", dx.mean(1) / dx.abs().mean(1).clamp_min(1e-30), rounding);
  }

  void check_channel(int64_t c) const {
    const reference::LayerParameters p = parameters();
    const auto x = channel(x_, c), dy = channel(grad_, c);
    const reference::LayerResult oracle = reference::layer(x, p);
    const std::vector<int> level = check_y(c, oracle);
    std::vector<double> z = x;
    for (double& v : z) v = (v - oracle.mean_in) / std::sqrt(oracle.var_in + p.eps);
    const auto gradient = reference::layer_gradient(x, dy, level, oracle_density(z, p.quantile), p);
    check_grad_x(c, gradient.x);
    check_affine(c, dy, z, level, gradient);
    check_running(c, oracle);
  }

 private:
  reference::LayerParameters parameters() const {
    const auto& options = layer_->options;
    reference::LayerParameters out;
    out.quantile = {static_cast<int>(options.levels()), options.bound(), options.positive_share(),
                    options.bandwidth()};
    out.eps = options.eps();
    return out;
  }

  static torch::Tensor channels_first(const torch::Tensor& x) {
    return x.detach().transpose(0, 1).flatten(1).to(torch::kFloat);
  }
  static std::vector<double> channel(const torch::Tensor& x, int64_t c) {
    const torch::Tensor flat = x.detach().select(1, c).to(torch::kCPU, torch::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }

  // The levels that outputs stand for, of which none may be off by more than a bin's half level
  // makes, and few at all.
  std::vector<int> check_y(int64_t c, const reference::LayerResult& oracle) const {
    const auto y = channel(y_, c);
    const double scale = 1 / std::sqrt(oracle.var_out + layer_->options.eps());
    const double step = scale / static_cast<double>(layer_->options.levels());
    std::vector<int> level = oracle.level;
    double worst = 0, between = 0, off = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double difference = (y[i] - oracle.y[i]) / step;
      if (!(std::abs(difference) < 1e6)) fail("y", c, std::abs(difference), 1);
      level[i] += static_cast<int>(std::lround(difference));
      worst = std::max(worst, std::abs(std::round(difference)));
      off += std::abs(std::round(difference)) / static_cast<double>(y.size());
      const double rounding = tolerance_.stored * std::abs(y[i]) / step;
      between = std::max(between, std::abs(difference - std::round(difference)) - rounding);
    }
    require("levels of y (the most that one is off by)", c, worst, 1);
    require("levels of y (the mean that they are off by)", c, off, 0.2);
    // Where levels move, so does their mean, by which all outputs are shifted.
    require("y (in levels)", c, between, tolerance_.y + off);
    return level;
  }

  void check_grad_x(int64_t c, const std::vector<double>& expected) const {
    const auto found = channel(x_.grad(), c);
    double error = 0, norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      error += std::pow(found[i] - expected[i], 2);
      norm += std::pow(expected[i], 2);
    }
    require("grad_x", c, std::sqrt(error / norm), tolerance_.grad_x + tolerance_.stored);
  }

  void check_affine(int64_t c, const std::vector<double>& dy, const std::vector<double>& xhat,
                    const std::vector<int>& level, const reference::LayerGradient& g) const {
    const double levels = static_cast<double>(layer_->options.levels());
    double size[4] = {};
    for (size_t i = 0; i < dy.size(); ++i) {
      size[0] += std::abs(g.z[i] * xhat[i]);
      size[1] += std::abs(g.z[i]);
      size[2] += std::abs(dy[i]) * (level[i] / levels + 0.5) * std::sqrt(12.0);
      size[3] += std::abs(dy[i]);
    }
    const auto check = [&](const char* term, const torch::Tensor& vector, double expected,
                           double terms, double within) {
      const double found = vector.grad()[c].item<double>();
      require(term, c, std::abs(found - expected) / terms, within);
    };
    check("the gradient of weight_in", layer_->weight_in, g.weight_in, size[0],
          tolerance_.density_sum);
    check("the gradient of bias_in", layer_->bias_in, g.bias_in, size[1], tolerance_.density_sum);
    check("the gradient of weight_out", layer_->weight_out, g.weight_out, size[2], tolerance_.sum);
    check("the gradient of bias_out", layer_->bias_out, g.bias_out, size[3], tolerance_.sum);
  }

  void check_running(int64_t c, const reference::LayerResult& oracle) const {
    const double n = static_cast<double>(x_.numel() / x_.size(1)), unbiased = n / (n - 1);
    const double momentum = *layer_->options.momentum();
    const auto check = [&](const char* term, const torch::Tensor& running, double start,
                           double value, double within) {
      const double expected = start + momentum * (value - start);
      require(term, c, std::abs(running[c].item<double>() - expected), within);
    };
    check("running_mean_in", layer_->running_mean_in, 0, oracle.mean_in, 1e-6);
    check("running_var_in", layer_->running_var_in, 1, oracle.var_in * unbiased, 1e-6);
    check("running_mean_out", layer_->running_mean_out, 0.5, oracle.mean_out, 1e-4);
    check("running_var_out", layer_->running_var_out, 1.0 / 12, oracle.var_out * unbiased, 1e-4);
  }

  void require_all(const char* term, const torch::Tensor& error, double within) const {
    const torch::Tensor worst = error.abs().nan_to_num(INFINITY);
    require(term, worst.argmax().item<int64_t>(), worst.max().item<double>(), within);
  }
  void require(const char* term, int64_t c, double error, double within) const {
    if (!(error <= within)) fail(term, c, error, within);
  }
  [[noreturn]] void fail(const char* term, int64_t c, double error, double within) const {
    const bool last = x_.suggest_memory_format() == torch::MemoryFormat::ChannelsLast;
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, "within %.3g, got an error of %.3g in channel %lld",
                  within, error, static_cast<long long>(c));
    throw std::runtime_error(std::string("[bench] expected ") + term + " of the layer (" +
                             layer_->options.algorithm() + ") on " + ops::describe(x_) + ", " +
                             (last ? "channels_last" : "contiguous") + ", " + x_.device().str() +
                             " to agree with the oracle " + numbers);
  }

  torch::Tensor x_, y_, grad_;
  Tolerance tolerance_;
  nn::QuantileActivation layer_;
};

}  // namespace

void validate(const nn::QuantileActivationOptions& options, const torch::Tensor& x) {
  const Validation validation(options, x);
  validation.check_every_channel();
  // The ends, and two within; long channels take seconds each.
  const int64_t channels = x.size(1), last = channels - 1;
  std::set<int64_t> some = {last};
  if (x.numel() / channels < 500'000)
    some.insert({0, channels / 3, std::min(2 * channels / 3 + 1, last)});
  for (const int64_t c : some) validation.check_channel(c);
}

}  // namespace qact::bench
