// MAP@K: do an embedding's nearest neighbours share its class?
//
// Every sample is a query against all others, ranked by Euclidean distance; ties go to the smaller
// index. With rel_j = 1 where the j-th neighbour has the query's label and P@j the precision of the
// first j, AP@K = sum_{j <= K} P@j rel_j / D. MAP@K is its mean over the queries.
#pragma once

#include <ATen/core/Tensor.h>

namespace qact::metrics {

struct Retrieval {
  double map = 0;            // D = min(K, R), R the other samples of the query's class
  double map_retrieved = 0;  // D = the relevant ones among the K retrieved, as in the library
                             // pytorch-metric-learning
};

// embeddings (n, d) floating, labels (n) int64, on any device. A query alone in its class
// counts 0; NaN where an embedding is not finite. The same bits on every device and for any
// number of threads.
Retrieval map_at_k(const at::Tensor& embeddings, const at::Tensor& labels, int64_t k = 100);

}  // namespace qact::metrics
