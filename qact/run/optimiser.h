// SGD and Adam with a state that can be saved by the parameters' names.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "qact/models/network.h"
#include "qact/run/train_config.h"
#include "qact/safetensors/torch/tensors.h"

namespace qact::run {

class Optimiser {
 public:
  Optimiser(const TrainConfig& config, const models::Network& network);

  void zero_grad() { optimiser_->zero_grad(); }
  void step(double lr);

  // PARAMETER.momentum_buffer of SGD; PARAMETER.exp_avg, .exp_avg_sq and .step of Adam.
  // Nothing of a parameter that has had no gradient yet.
  safetensors::Tensors state() const;
  // Throws where a tensor belongs to no parameter or does not fit it; `source` for the message.
  void load(const safetensors::Tensors& state, const std::string& source);

 private:
  torch::OrderedDict<std::string, torch::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimiser_;
  bool adam_;
};

}  // namespace qact::run
