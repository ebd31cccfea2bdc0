// The side of t-SNE that does not move: how likely two points are neighbours.
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

// The exponential of `distances` with a beta found by the entropy, in place: sums to 1 but for
// the point `self`, which gets 0. Equal distances share equally whatever beta.
void to_probabilities(std::vector<double>& distances, int64_t self, double perplexity);

}  // namespace qact::metrics
