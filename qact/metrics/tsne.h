// t-SNE: maps points of many dimensions to a plane so that neighbours stay neighbours.
//
// Exact: every pair counts. p_ij is symmetrised from Gaussians whose widths give each point
// the same perplexity; w_ij = 1 / (1 + |y_i - y_j|^2), q_ij = w_ij / sum w; gradient descent
// on KL(p || q). It starts from the principal components, so there is no seed, and the bits
// of the result do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qact::metrics {

struct TsneOptions {
  double perplexity = 30;  // at most a third of the other points
  int components = 50;     // principal components that it reads of the values
  int iterations = 1000;
  int threads = 0;  // 0: one per core
};

// All pairs are in memory at once: 4 bytes each.
inline constexpr int64_t kMostTsnePoints = 20'000;

// values[n][dims] to coordinates in the plane [n][2], with mean 0. Points that are to be compared
// go into one call: the planes of two calls are unrelated.
std::vector<float> tsne(std::span<const float> values, int64_t dims,
                        const TsneOptions& options = {});

}  // namespace qact::metrics
