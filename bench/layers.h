// The two layers that are timed next to each other, and one training step of either.
#pragma once

#include <torch/torch.h>

#include "bench/bench.h"
#include "qact/nn/quantile_activation.h"

namespace qact::bench {

inline constexpr const char* kPeer = "BatchNorm2d + ReLU";

struct BatchNormReluImpl : torch::nn::Module {
  explicit BatchNormReluImpl(int64_t channels)
      : norm(register_module("norm", torch::nn::BatchNorm2d(channels))) {}
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm->forward(x)); }
  torch::nn::BatchNorm2d norm;
};
TORCH_MODULE(BatchNormRelu);

// Milliseconds of the forward pass, the backward pass and both.
template <class Layer>
Step training_step(Layer layer, const torch::Tensor& input, const torch::Tensor& grad) {
  return [=]() mutable {
    const torch::Tensor x = input.detach().requires_grad_(true);
    layer->zero_grad();
    torch::Tensor y;
    const double forward = milliseconds_of([&] { y = layer->forward(x); });
    const double backward = milliseconds_of([&] { y.backward(grad); });
    return std::vector<double>{forward, backward, forward + backward};
  };
}

// Compares the layer with the oracle (validate.h), then times it next to the peer, both on x as it
// lies: medians of [ours, the peer's][forward, backward, both].
std::vector<std::vector<double>> time_side_by_side(const torch::Tensor& x, int repeats);

}  // namespace qact::bench
