// Activation checkpointing: a segment of a network saves nothing but its input for the backward
// pass, and its forward pass runs once more there. Less memory for more time, as
// torch.utils.checkpoint does.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace qact::models {

// segment(x) with the same gradients, bit for bit. The segment must give the same output twice;
// the second pass has the autocast mode of the first. `buffers`, the running statistics and
// contexts that the segment updates, are updated by the first pass alone.
torch::Tensor checkpoint(const std::function<torch::Tensor(const torch::Tensor&)>& segment,
                         const std::vector<torch::Tensor>& buffers, const torch::Tensor& x);

}  // namespace qact::models
