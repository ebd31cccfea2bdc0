#include "qact/adapt/affine_parameters.h"

#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include "qact/nn/batch_norm.h"
#include "qact/nn/instance_batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::adapt {
namespace {

bool has_affine_parameters(const torch::nn::Module& module) {
  return module.as<nn::QuantileActivation>() || module.as<nn::BatchNorm>() ||
         module.as<nn::InstanceBatchNorm>() || module.as<torch::nn::GroupNorm>() ||
         module.as<torch::nn::InstanceNorm2d>();
}

}  // namespace

std::vector<torch::Tensor> affine_parameters(const torch::nn::Module& network) {
  std::vector<torch::Tensor> all;
  for (const auto& module : network.modules()) {
    if (!has_affine_parameters(*module)) continue;
    for (const torch::Tensor& parameter : module->parameters(/*recurse=*/false)) {
      all.push_back(parameter);
    }
  }
  return all;
}

}  // namespace qact::adapt
