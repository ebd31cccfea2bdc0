// MAP@K by its definition: all distances, one sort for each query.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "qact/metrics/retrieval.h"

namespace qact::metrics {

// [n][min(k, n - 1)]
inline std::vector<int64_t> reference_neighbours(const torch::Tensor& embeddings, int64_t k) {
  const torch::Tensor host = embeddings.to(torch::kCPU, torch::kFloat).contiguous();
  const int64_t n = host.size(0), d = host.size(1);
  const float* const x = host.data_ptr<float>();
  std::vector<int64_t> out;
  for (int64_t query = 0; query < n; ++query) {
    std::vector<std::pair<double, int64_t>> others;
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < d; ++c) {
        const double gap = static_cast<double>(x[query * d + c]) - x[i * d + c];
        sum += gap * gap;
      }
      if (i != query) others.emplace_back(sum, i);
    }
    std::sort(others.begin(), others.end());
    for (int64_t j = 0; j < std::min(k, n - 1); ++j) out.push_back(others[j].second);
  }
  return out;
}

inline Retrieval reference_map(const torch::Tensor& embeddings, const std::vector<int64_t>& labels,
                               int64_t k) {
  const auto n = static_cast<int64_t>(labels.size()), retrieved = std::min(k, n - 1);
  const std::vector<int64_t> neighbours = reference_neighbours(embeddings, k);
  Retrieval out;
  for (int64_t query = 0; query < n; ++query) {
    const int64_t same = std::count(labels.begin(), labels.end(), labels[query]) - 1;
    double sum = 0, relevant = 0;
    for (int64_t j = 0; j < retrieved; ++j) {
      if (labels[neighbours[query * retrieved + j]] == labels[query]) sum += ++relevant / (j + 1);
    }
    if (same > 0) out.map += sum / std::min(k, same) / n;
    if (relevant > 0) out.map_retrieved += sum / relevant / n;
  }
  return out;
}

}  // namespace qact::metrics
