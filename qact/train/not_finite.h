// Where a forward pass first went wrong.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>

namespace qact::train {

// Runs `forward` and names the first operation whose output is not finite, by the layer whose
// parameters it reads, or after the last such layer. Empty where all outputs are finite.
std::string first_not_finite(const torch::nn::Module& network,
                             const std::function<void()>& forward);

}  // namespace qact::train
