#include "qact/models/blocks.h"

#include "qact/models/activation_checkpointing.h"

namespace qact::models {

void Stage::append(std::shared_ptr<Block> block) {
  blocks_.push_back(register_module(std::to_string(blocks_.size()), std::move(block)));
}

torch::Tensor Stage::forward(torch::Tensor x, bool checkpoint_blocks) {
  for (const auto& block : blocks_) {
    const auto forward = [block](const torch::Tensor& in) { return block->forward(in); };
    x = checkpoint_blocks ? checkpoint(forward, block->buffers(), x) : forward(x);
  }
  return x;
}

}  // namespace qact::models
