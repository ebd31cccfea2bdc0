// Triplet losses: the mean over anchors a of max(0, |a - p| - |a - n| + margin), with a positive p
// of the anchor's class and a negative n of another class.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/base/random.h"

namespace qact::losses {

// The anchors are all samples for which the batch has a positive and a negative. Without any, the
// loss is 0.

// Positive and negative are drawn uniformly. Reads the labels on the CPU.
at::Tensor random_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin,
                          base::Random& random);

// Batch-hard: the farthest positive and the nearest negative.
at::Tensor hard_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin);

}  // namespace qact::losses
