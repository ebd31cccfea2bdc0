// The parameters that scale and shift channels.
#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace qact::adapt {

// Weights and biases of all norms and quantile activations inside, in the order of the modules.
std::vector<torch::Tensor> affine_parameters(const torch::nn::Module& network);

}  // namespace qact::adapt
