#include "qact/train/tensor_extractor.h"

#include <torch/torch.h>

#include "qact/ops/checks.h"

namespace qact::train {

torch::Tensor TensorExtractor::extract(const std::string& name, at::IntArrayRef shape,
                                       at::ScalarType type) {
  const auto found = tensors_->find(name);
  const std::string where = source_ + ": tensor '" + name + "'";
  const torch::Tensor expected = torch::empty(shape, torch::dtype(type).device(torch::kMeta));
  if (found == tensors_->end()) safetensors::fail(where, ops::describe(expected), "none");
  const torch::Tensor tensor = found->second;
  if (tensor.sizes() != shape || tensor.scalar_type() != type) {
    safetensors::fail(where, ops::describe(expected), ops::describe(tensor));
  }
  tensors_->erase(found);
  return tensor;
}

}  // namespace qact::train
