// The losses, by name. One file each; losses.cpp has the table.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "qact/core/random.h"

namespace qact::losses {

struct Batch {
  at::Tensor embedding;  // (B, features)
  at::Tensor logits;     // (B, classes)
  at::Tensor labels;     // (B) int64
};

struct Options {
  double margin = 1.0;  // of the triplet losses
  int64_t seeds = 1;    // per class, of the watershed loss
};

struct Loss {
  // A scalar to differentiate, in float or double. What is random comes from `random` alone.
  std::function<at::Tensor(const Batch& batch, core::Random& random)> value;
  // Compares samples of the batch with each other, so every class in it needs several.
  bool balanced;
};

// cross-entropy, triplet, triplet-hard or watershed. Throws for any other name, listing those
// that exist.
Loss make(const std::string& name, const Options& options = {});

std::vector<std::string> names();

}  // namespace qact::losses
