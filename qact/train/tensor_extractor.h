// Takes tensors out of those of a file one by one, so that the caller knows what is left over.
#pragma once

#include <string>

#include "qact/safetensors/torch/tensors.h"

namespace qact::train {

class TensorExtractor {
 public:
  // `source` is where the tensors are from, for messages.
  TensorExtractor(safetensors::Tensors* tensors, std::string source)
      : tensors_(tensors), source_(std::move(source)) {}

  bool contains(const std::string& name) const { return tensors_->contains(name); }

  // Removes the tensor of this name from the others. Throws unless there is one of this shape and
  // type.
  torch::Tensor extract(const std::string& name, at::IntArrayRef shape, at::ScalarType type);

 private:
  safetensors::Tensors* tensors_;
  std::string source_;
};

}  // namespace qact::train
