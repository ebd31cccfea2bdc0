// Euclidean distances between the samples of a batch.
#pragma once

#include <ATen/core/Tensor.h>

namespace qact::losses {

// (B, B), on the embedding's device, without gradient, and by differences: the shortcut over
// products of embeddings loses what is small, which is what counts here.
at::Tensor pairwise_distances(const at::Tensor& embedding);

}  // namespace qact::losses
