// Observes the operators that a network calls. LibTorch's modules have no hooks, but
// at::RecordFunction reports every operator with its inputs and outputs.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace qact::models {

// An operator that has ended.
struct OperatorCall {
  std::string_view name;                    // "aten::relu"
  torch::Tensor input;                      // the first one; undefined where it is no tensor
  const std::vector<c10::IValue>& outputs;  // empty where the operator has thrown
  const std::string& layer;                 // whose parameters were read last; empty: none so far
  bool reads_layer;                         // this operator, or one inside it, read them
};

// Runs `work` on this thread and calls `observe` after each operator that `network` calls.
// Operators that run inside another one are not reported: their outputs may be memory that is yet
// to be written.
void observe_operators(const torch::nn::Module& network,
                       const std::function<void(const OperatorCall&)>& observe,
                       const std::function<void()>& work);

}  // namespace qact::models
