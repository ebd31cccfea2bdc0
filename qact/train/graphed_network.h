// A network's forward and backward pass in training on a GPU as two CUDA graphs, captured once and
// replayed for every batch. The loss between them is computed eagerly.
#pragma once

#include <c10/core/Stream.h>
#include <torch/types.h>

#include <functional>
#include <optional>

#include "qact/models/network.h"
#include "qact/train/cuda_graph.h"

namespace qact::train {

class GraphedNetwork {
 public:
  using Forward = std::function<models::NetworkOutput(const torch::Tensor& images)>;

  // A stream that graphs can be captured on, since the default one cannot. It begins behind the
  // work of the current stream. All of training runs on it.
  static c10::Stream side_stream(torch::Device device);

  // Eager steps before the capture, in which torch chooses its algorithms.
  static constexpr int kWarmUpSteps = 3;

  // Captures `forward` for batches like `images` on the current stream, on which it has run
  // kWarmUpSteps times. The network's parameters must have no gradients.
  GraphedNetwork(const torch::Tensor& images, const Forward& forward);

  // Returns leaves for the loss to differentiate. The next call overwrites them.
  models::NetworkOutput forward(const torch::Tensor& images);
  // Called once the leaves have their gradients, each time the same leaves. Overwrites the
  // gradients of the parameters, which last until the next forward().
  void backward();

 private:
  // An output of the forward graph; the loss sees it as a leaf, whose gradient is the backward
  // graph's input.
  struct Output {
    torch::Tensor value, leaf, gradient;
  };
  void capture_backward();

  torch::Tensor images_;
  Output embedding_, logits_;
  std::optional<CudaGraph> forward_, backward_;
};

}  // namespace qact::train
