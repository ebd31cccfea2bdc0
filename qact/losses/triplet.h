// Triplet losses: a sample should be nearer to one of its class than to one of another, by a
// margin. mean over anchors of max(0, |a - p| - |a - n| + margin).
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/base/random.h"

namespace qact::losses {

// Anchors are all samples for which the batch holds another of their class and one of another
// class. Where there is none the loss is 0.

// Both partners drawn uniformly. Reads the labels on the CPU.
at::Tensor random_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin,
                          base::Random& random);

// The farthest of the same class, the nearest of the others.
at::Tensor hard_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin);

}  // namespace qact::losses
