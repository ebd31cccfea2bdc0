// A network's forward and backward pass in training on a GPU, recorded once and replayed for
// every batch. The loss between them is computed as usual.
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

  // A stream to work on from the beginning, behind what the current one has been given.
  static c10::Stream stream(torch::Device device);

  // Steps in which torch chooses its algorithms, before one is recorded.
  static constexpr int kStepsBefore = 3;

  // For batches like `images`, on the current stream. `forward` has run kStepsBefore times on
  // that stream, and the network's parameters have no gradients.
  GraphedNetwork(const torch::Tensor& images, const Forward& forward);

  // Leaves for the loss to differentiate; the next call overwrites them.
  models::NetworkOutput forward(const torch::Tensor& images);
  // Once those have their gradients, and each time the same of them: overwrites the gradients of
  // the parameters, which last until the next forward().
  void backward();

 private:
  // An output of the network, and what the loss sees of it.
  struct End {
    torch::Tensor output, leaf, gradient;
  };
  void record_backward();

  torch::Tensor images_;
  End embedding_, logits_;
  std::optional<CudaGraph> forward_, backward_;
};

}  // namespace qact::train
