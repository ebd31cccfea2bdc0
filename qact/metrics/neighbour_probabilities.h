// The fixed distribution of t-SNE: how likely two points of the input space are neighbours.
#pragma once

#include <cstdint>
#include <vector>

namespace qact::metrics {

// p_ij = (p_j|i + p_i|j) / 2n with p_j|i = exp(-beta_i |v_i - v_j|^2) / sum_k of the same,
// p_i|i = 0, and beta_i such that the entropy of p_.|i is log(perplexity).
class NeighbourProbabilities {
 public:
  // points[n][dims]. Rows are padded with zeros to `stride` >= n values.
  NeighbourProbabilities(const std::vector<float>& points, int64_t dims, int64_t stride,
                         double perplexity, int threads);

  const float* row(int64_t i) const { return p_.data() + i * stride_; }

 private:
  int64_t stride_;
  std::vector<float> p_;
};

// Replaces the squared distances from the point `self` by p_.|self, as above; p_self|self is 0.
void to_probabilities(std::vector<double>& distances, int64_t self, double perplexity);

}  // namespace qact::metrics
