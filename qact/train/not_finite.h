// Finds NaN and infinity: where a forward pass first gave one, and in weights.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>

namespace qact::train {

// Runs `forward` and names the first operator whose output is not finite, by the layer whose
// parameters it reads, or else by the layer before it. Empty where all outputs are finite.
std::string first_not_finite(const torch::nn::Module& network,
                             const std::function<void()>& forward);

// Throws where a parameter or a buffer is not finite, and names it.
void check_finite_weights(const torch::nn::Module& network);

}  // namespace qact::train
