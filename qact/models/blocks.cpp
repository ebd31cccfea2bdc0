#include "qact/models/blocks.h"

#include "qact/models/recompute.h"

namespace qact::models {

void Stage::append(std::shared_ptr<Block> block) {
  blocks_.push_back(register_module(std::to_string(blocks_.size()), std::move(block)));
}

torch::Tensor Stage::forward(torch::Tensor x, bool recompute) {
  for (const auto& block : blocks_) {
    const auto compute = [block](const torch::Tensor& in) { return block->forward(in); };
    x = recompute ? recomputed(compute, block->buffers(), x) : compute(x);
  }
  return x;
}

}  // namespace qact::models
