// make bench: validates the fused layer against the oracle, then times it side by side
// with torch's BatchNorm2d + ReLU in this one process, and writes build/bench.json.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qact/core/cpu/dispatch.h"
#include "qact/core/reference.h"
#include "qact/nn/quantile_activation.h"
#include "qact/ops/quantile_layer.h"

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> forward, backward, both;
};

// One training step of a layer: a forward and a backward pass.
template <class Layer>
void step(Layer& layer, const torch::Tensor& input, const torch::Tensor& grad, Times* times) {
  torch::Tensor x = input.detach().requires_grad_(true);
  layer->zero_grad();
  const auto start = Clock::now();
  torch::Tensor y = layer->forward(x);
  const auto middle = Clock::now();
  y.backward(grad);
  const auto end = Clock::now();
  if (!times) return;
  times->forward.push_back(milliseconds(start, middle));
  times->backward.push_back(milliseconds(middle, end));
  times->both.push_back(milliseconds(start, end));
}

struct BatchNormReluImpl : torch::nn::Module {
  explicit BatchNormReluImpl(int64_t channels)
      : norm(register_module("norm", torch::nn::BatchNorm2d(channels))) {}
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm->forward(x)); }
  torch::nn::BatchNorm2d norm;
};
TORCH_MODULE(BatchNormRelu);

// The largest difference of a level, and the relative error of the input's gradient, of
// one channel against the oracle.
void validate(const torch::Tensor& x, const torch::Tensor& grad, json& row) {
  auto [y, level, density, stats, context] = qact::ops::quantile_layer_forward(
      x, {}, {}, {}, {}, 1e-5, 100, 100.0, 0.5, 0.5, "auto", false, true);
  auto [grad_x, affine] = qact::ops::quantile_layer_backward(grad, x, level, density, stats, {},
                                                             {}, 1e-5, 100);
  const auto channel = [](const torch::Tensor& t) {
    torch::Tensor flat = t.select(1, 0).reshape({-1}).to(torch::kDouble);
    return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  };
  // The oracle is quadratic in the context: a part of it is enough.
  const int64_t images = std::max<int64_t>(1, 4096 / (x.numel() / x.size(0) / x.size(1)));
  const torch::Tensor part = x.narrow(0, 0, images), part_grad = grad.narrow(0, 0, images);
  auto [y2, level2, density2, stats2, context2] = qact::ops::quantile_layer_forward(
      part, {}, {}, {}, {}, 1e-5, 100, 100.0, 0.5, 0.5, "auto", false, true);
  auto [grad_x2, affine2] = qact::ops::quantile_layer_backward(part_grad, part, level2, density2,
                                                               stats2, {}, {}, 1e-5, 100);
  const auto values = channel(part), grads = channel(part_grad), ours = channel(grad_x2);
  const auto expected = qact::core::reference::layer(values, {});
  const auto gradient = qact::core::reference::layer_gradient(values, grads, {});
  int worst = 0;
  double error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const int found = level2.data_ptr<uint8_t>()[i];
    worst = std::max(worst, std::abs(found - expected.level[i]));
    error += (ours[i] - gradient.x[i]) * (ours[i] - gradient.x[i]);
    norm += gradient.x[i] * gradient.x[i];
  }
  row["levels_off"] = worst;
  row["gradient_error"] = std::sqrt(error / norm);
}

json bench_layer(const std::vector<int64_t>& shape, int repeats) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn(shape), grad = torch::randn(shape);
  qact::nn::QuantileActivation ours(shape[1]);
  BatchNormRelu peer(shape[1]);
  Times a, b;
  for (int i = -3; i < repeats; ++i) {
    step(ours, x, grad, i < 0 ? nullptr : &a);
    step(peer, x, grad, i < 0 ? nullptr : &b);
  }
  json rows = json::array();
  const std::tuple<const char*, double, double> passes[] = {
      {"forward", median(a.forward), median(b.forward)},
      {"backward", median(a.backward), median(b.backward)},
      {"both", median(a.both), median(b.both)}};
  for (const auto& [pass, qact_ms, peer_ms] : passes) {
    json row = {{"what", "layer"},         {"device", "cpu"},
                {"shape", shape},          {"dtype", "float32"},
                {"layout", "contiguous"},  {"pass", pass},
                {"threads", at::get_num_threads()},
                {"qact_ms", qact_ms},      {"peer", "BatchNorm2d + ReLU"},
                {"peer_ms", peer_ms},      {"ratio", qact_ms / peer_ms}};
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 30, threads = 2;
  CLI::App app("times the fused layer");
  app.add_option("--repeats", repeats);
  app.add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(threads);
  if (getenv("ONE")) { for (int i=0;i<40;i++) bench_layer({128,512,4,4}, repeats); return 0; }
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {128, 64, 32, 32}, {128, 128, 16, 16}, {128, 256, 8, 8}, {128, 512, 4, 4}}) {
    for (const json& row : bench_layer(shape, repeats)) {
      std::printf("%-20s %-9s %8.3f %8.3f  %.3f\n", row["shape"].dump().c_str(),
                  row["pass"].get<std::string>().c_str(), row["qact_ms"].get<double>(),
                  row["peer_ms"].get<double>(), row["ratio"].get<double>());
    }
  }
}
