// The losses, by name. loss.cpp has the table of them.
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
  // A scalar to differentiate, in float or double. `random` is the only source of random numbers.
  std::function<at::Tensor(const LossInput& input, base::Random& random)> value;
  // Compares samples of a batch with each other: needs class-balanced batches (balanced_order.h).
  bool balanced;
};

// cross-entropy, triplet, triplet-hard or watershed. Throws for any other name.
Loss make(const std::string& name, const LossOptions& options = {});

std::vector<std::string> names();

}  // namespace qact::losses
