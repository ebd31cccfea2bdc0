// The default of eval(): the layer in its running context next to BatchNorm2d + ReLU in eval().
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/layers.h"
#include "qact/ops/context.h"

namespace qact::bench {
namespace {

// Levels of a few channels, value by value, from the definition: how many quantiles are at most z.
void validate_tracked(nn::QuantileActivation& layer, const torch::Tensor& x) {
  const torch::Tensor y = layer->forward(x).to(torch::kDouble);
  const torch::Tensor quantiles = ops::context_quantiles(layer->context);
  for (const int64_t c : {int64_t{0}, x.size(1) / 2, x.size(1) - 1}) {
    const auto in = x.select(1, c).to(torch::kDouble).reshape({-1}).contiguous();
    const auto out = y.select(1, c).reshape({-1}).contiguous();
    const auto number = [c](const torch::Tensor& v) { return v[c].item<double>(); };
    const double scale_in =
                     number(layer->weight_in) / std::sqrt(number(layer->running_var_in) + 1e-5),
                 scale_out =
                     number(layer->weight_out) / std::sqrt(number(layer->running_var_out) + 1e-5);
    const double* q = quantiles[c].const_data_ptr<double>();
    const int64_t levels = quantiles.size(1);
    for (int64_t i = 0; i < in.numel(); i += 1 + in.numel() / 5000) {
      const double z =
          (in.const_data_ptr<double>()[i] - number(layer->running_mean_in)) * scale_in +
          number(layer->bias_in);
      const double found = (out.const_data_ptr<double>()[i] - number(layer->bias_out)) / scale_out +
                           number(layer->running_mean_out);
      // Rounding may carry z past a quantile that it all but equals.
      const double slack = 1e-5 * std::max(1.0, std::abs(z));
      const auto below = [&](double at) {
        return static_cast<double>(std::upper_bound(q, q + levels, at) - q) / levels;
      };
      constexpr double rounding = 1e-5;
      if (found < below(z - slack) - rounding || found > below(z + slack) + rounding) {
        throw std::runtime_error("[inference] expected the level " + std::to_string(below(z)) +
                                 " of a value, got " + std::to_string(found));
      }
    }
  }
}

template <class Layer>
Step inference(Layer layer, const torch::Tensor& x) {
  return [=]() mutable {
    torch::NoGradGuard no_grad;
    return std::vector<double>{milliseconds_of([&] { layer->forward(x); })};
  };
}

void time_inference(const torch::Tensor& x, const char* dtype, const char* layout,
                    const Settings& settings, Report& report) {
  nn::QuantileActivation layer(x.size(1));
  BatchNormRelu baseline(x.size(1));
  for (int i = 0; i < 3; ++i) {
    layer->forward(x);
    baseline->forward(x);
  }
  layer->eval();
  baseline->eval();
  validate_tracked(layer, x);
  const auto times = interleave({inference(layer, x), inference(baseline, x)}, settings.repeats);
  report.add({"inference", x.sizes().vec(), dtype, layout, "forward", times[0][0], kPeer,
              times[1][0], ""});
}

}  // namespace

void inference(const Settings& settings, Report& report) {
  torch::manual_seed(0);
  const std::vector<std::vector<int64_t>> shapes = {{128, 64, 32, 32}, {128, 128, 16, 16},
                                                    {128, 256, 8, 8},  {128, 512, 4, 4},
                                                    {32, 64, 8, 8},    {8, 16, 4, 4}};
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    time_inference(x, "float32", "contiguous", settings, report);
    time_inference(x.contiguous(torch::MemoryFormat::ChannelsLast), "float32", "channels_last",
                   settings, report);
  }
}

}  // namespace qact::bench
