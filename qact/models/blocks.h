// Networks of blocks: one reads what the one before it made.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

namespace qact::models {

class Block : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};

// Blocks in a row, named 0, 1, ... as Python's Sequential names them.
class Stage : public torch::nn::Module {
 public:
  void append(std::shared_ptr<Block> block);
  // `recompute`: each block keeps nothing but its input for the backward pass.
  torch::Tensor forward(torch::Tensor x, bool recompute);

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
};

}  // namespace qact::models
