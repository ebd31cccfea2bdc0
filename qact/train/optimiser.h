// SGD and Adam with a state that can be saved by the parameters' names. One call to torch's
// fused kernels is a step: a loop over hundreds of small parameters would keep a GPU waiting.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qact/models/network.h"
#include "qact/safetensors/torch/tensors.h"
#include "qact/train/config.h"

namespace qact::train {

class Optimiser {
 public:
  Optimiser(const TrainConfig& config, const models::Network& network);

  void zero_grad();
  void step(double lr);

  // PARAMETER.momentum_buffer of SGD; PARAMETER.exp_avg, .exp_avg_sq and .step of Adam.
  // Nothing of a parameter that has had no gradient yet.
  safetensors::Tensors state() const;
  // Throws where a tensor belongs to no parameter or does not fit it; `source` for the message.
  void load(const safetensors::Tensors& state, const std::string& source);

 private:
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    // Undefined until the first gradient.
    torch::Tensor momentum = {};                       // of SGD
    torch::Tensor mean = {}, square = {}, steps = {};  // of Adam; steps is a float for its kernel
  };

  bool adam() const { return config_.opt == "adam"; }

  TrainConfig config_;
  std::vector<Slot> slots_;
};

}  // namespace qact::train
