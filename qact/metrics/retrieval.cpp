#include "qact/metrics/retrieval.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "qact/metrics/nearest_neighbours.h"

namespace qact::metrics {

Retrieval map_at_k(const at::Tensor& embeddings, const at::Tensor& labels, int64_t k) {
  TORCH_CHECK(embeddings.dim() == 2 && embeddings.is_floating_point(),
              "[map_at_k] expected floating embeddings (n, d), got ", embeddings.scalar_type(),
              " of shape ", embeddings.sizes());
  TORCH_CHECK(labels.dim() == 1 && labels.scalar_type() == at::kLong &&
                  labels.size(0) == embeddings.size(0),
              "[map_at_k] expected ", embeddings.size(0), " labels, int64, got ",
              labels.scalar_type(), " of shape ", labels.sizes());
  TORCH_CHECK(k >= 1, "[map_at_k] expected k >= 1, got ", k);
  const int64_t n = embeddings.size(0);
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (n == 0 || !embeddings.to(at::kFloat).isfinite().all().item<bool>()) return {none, none};

  const at::Tensor host_labels = labels.cpu().contiguous();
  const int64_t* const label = host_labels.const_data_ptr<int64_t>();
  std::unordered_map<int64_t, int64_t> members;
  for (int64_t i = 0; i < n; ++i) ++members[label[i]];

  const std::vector<int64_t> neighbours = nearest_neighbours(embeddings, k);
  const int64_t retrieved = std::min(k, n - 1);
  Retrieval out;
  for (int64_t query = 0; query < n; ++query) {
    double sum = 0;  // of P@j rel_j
    int64_t relevant = 0;
    for (int64_t j = 0; j < retrieved; ++j) {
      if (label[neighbours[query * retrieved + j]] != label[query]) continue;
      ++relevant;
      sum += static_cast<double>(relevant) / static_cast<double>(j + 1);
    }
    if (relevant == 0) continue;
    const int64_t others = members.at(label[query]) - 1;
    out.map += sum / static_cast<double>(std::min(k, others)) / static_cast<double>(n);
    out.map_retrieved += sum / static_cast<double>(relevant) / static_cast<double>(n);
  }
  return out;
}

}  // namespace qact::metrics
