// Euclidean distances between the samples of a batch.
#pragma once

#include <ATen/core/Tensor.h>

namespace qact::losses {

// (B, B), on the embedding's device, without gradient. From differences of embeddings: the faster
// way by matrix products cancels where distances are small, and the small ones count here.
at::Tensor pairwise_distances(const at::Tensor& embedding);

}  // namespace qact::losses
