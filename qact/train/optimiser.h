// SGD and Adam whose state is saved by the parameters' names. A step is one call of torch's fused
// kernels: a loop over hundreds of small parameters would keep a GPU waiting.
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

  // PARAMETER.momentum_buffer of SGD; PARAMETER.exp_avg, .exp_avg_sq and .step of Adam. None of a
  // parameter that has had no gradient yet.
  safetensors::Tensors state_dict() const;
  // Throws where a tensor belongs to no parameter or does not fit it; `source` is for the message.
  void load_state_dict(const safetensors::Tensors& state, const std::string& source);

 private:
  struct ParameterState {
    std::string name;
    torch::Tensor parameter;
    // Undefined until the first gradient. Adam's kernel takes steps as float.
    torch::Tensor momentum_buffer = {};                      // of SGD
    torch::Tensor exp_avg = {}, exp_avg_sq = {}, step = {};  // of Adam
  };

  bool adam() const { return config_.opt == "adam"; }

  TrainConfig config_;
  std::vector<ParameterState> states_;
};

}  // namespace qact::train
