// Half InstanceNorm, half BatchNorm, then ReLU (IBN, Pan et al. 2018): the control for a quantile
// activation that ranks half of its channels in their image.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "qact/nn/batch_norm.h"

namespace qact::nn {

// Input (B, C, ...), with two values or more per image and channel. The first half of the channels,
// rounded down, is normalised within each image and has no running statistics. The others are a
// BatchNorm, which follows the context modes.
class InstanceBatchNormImpl : public torch::nn::Cloneable<InstanceBatchNormImpl> {
 public:
  explicit InstanceBatchNormImpl(int64_t num_features);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;  // of the InstanceNorm
  BatchNorm batch{nullptr};

 private:
  int64_t num_features_;
};
TORCH_MODULE(InstanceBatchNorm);

}  // namespace qact::nn
