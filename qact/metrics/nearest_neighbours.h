// The nearest neighbours of each embedding among the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace qact::metrics {

// Row i holds the indices of the min(k, n - 1) embeddings nearest to i, nearest first, by
// Euclidean distance, equals by index; itself left out. embeddings (n, d) floating, finite, on
// any device, which proposes neighbours; the distances that count are computed on the CPU in
// double, so that neither the device nor the number of threads changes the result.
std::vector<int64_t> nearest_neighbours(const at::Tensor& embeddings, int64_t k);

}  // namespace qact::metrics
