// Memory for time: a part of a network that keeps nothing but its input for the backward pass
// and is computed once more there.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace qact::models {

// part(x), and the same gradients, bit for bit. The part must give the same output twice, in
// the same mode of precision; `buffers`, the running statistics and contexts that it updates,
// keep what the first pass made of them.
torch::Tensor recomputed(const std::function<torch::Tensor(const torch::Tensor&)>& part,
                         const std::vector<torch::Tensor>& buffers, const torch::Tensor& x);

}  // namespace qact::models
