// Blocks, and stages of them: what residual and dense networks consist of.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

namespace qact::models {

class Block : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};

// A sequence of blocks, named 0, 1, ... as torch.nn.Sequential names them.
class Stage : public torch::nn::Module {
 public:
  void append(std::shared_ptr<Block> block);
  // `checkpoint_blocks`: each block is a segment of activation checkpointing.
  torch::Tensor forward(torch::Tensor x, bool checkpoint_blocks);

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
};

}  // namespace qact::models
