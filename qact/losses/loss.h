// The losses, by name. One file each; losses.cpp has the table.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "qact/base/random.h"

namespace qact::losses {

struct LossInput {
  at::Tensor embedding;  // (B, features)
  at::Tensor logits;     // (B, classes)
  at::Tensor labels;     // (B) int64
};

struct LossOptions {
  double margin = 1.0;  // of the triplet losses
  int64_t seeds = 1;    // per class, of the watershed loss
};

struct Loss {
  // A scalar to differentiate, in float or double. What is random comes from `random` alone.
  std::function<at::Tensor(const LossInput& batch, base::Random& random)> value;
  // Compares samples of the batch with each other, so every class in it needs several.
  bool balanced;
};

// cross-entropy, triplet, triplet-hard or watershed. Throws for any other name, listing those
// that exist.
Loss make(const std::string& name, const LossOptions& options = {});

std::vector<std::string> names();

}  // namespace qact::losses
