// The nearest neighbours of each embedding among the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace qact::metrics {

// Row i has the indices of the min(k, n - 1) other embeddings nearest to i, nearest first, by
// Euclidean distance; ties go to the smaller index. embeddings (n, d) are floating, finite, on any
// device, which finds candidates. Their distances are then computed on the CPU in double, so that
// neither the device nor the number of threads changes the result.
std::vector<int64_t> nearest_neighbours(const at::Tensor& embeddings, int64_t k);

}  // namespace qact::metrics
