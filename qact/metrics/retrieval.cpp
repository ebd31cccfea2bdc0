#include "qact/metrics/retrieval.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

namespace qact::metrics {
namespace {

// The matrix product finds candidates; rounding may swap near neighbours, so that a few
// more than K are taken and their distances computed again, in double, in a fixed order.
constexpr int64_t kSpare = 32;
constexpr int64_t kQueries = 512;  // at a time

double squared_distance(const float* a, const float* b, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) {
    const double gap = static_cast<double>(a[i]) - b[i];
    sum += gap * gap;
  }
  return sum;
}

struct Precision {
  double sum = 0;  // of P@j rel_j
  int64_t relevant = 0;
};

Precision average_precision(const std::vector<std::pair<double, int64_t>>& nearest,
                            const int64_t* labels, int64_t query, int64_t k) {
  Precision out;
  for (int64_t j = 0; j < std::min<int64_t>(k, nearest.size()); ++j) {
    if (labels[nearest[j].second] != labels[query]) continue;
    ++out.relevant;
    out.sum += static_cast<double>(out.relevant) / static_cast<double>(j + 1);
  }
  return out;
}

}  // namespace

Retrieval map_at_k(const at::Tensor& embeddings, const at::Tensor& labels, int64_t k) {
  TORCH_CHECK(embeddings.dim() == 2 && embeddings.is_floating_point(),
              "[map_at_k] expected floating embeddings (n, d), got ", embeddings.scalar_type(),
              " of shape ", embeddings.sizes());
  TORCH_CHECK(labels.dim() == 1 && labels.scalar_type() == at::kLong &&
                  labels.size(0) == embeddings.size(0),
              "[map_at_k] expected ", embeddings.size(0), " labels, int64, got ",
              labels.scalar_type(), " of shape ", labels.sizes());
  TORCH_CHECK(k >= 1, "[map_at_k] expected k >= 1, got ", k);
  const int64_t n = embeddings.size(0), d = embeddings.size(1);
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (n == 0) return {none, none};

  // Centred, the squares are small and the differences of large numbers fewer.
  const at::Tensor all = embeddings.detach().to(at::kFloat);
  const at::Tensor centred = (all - all.mean(0)).contiguous();
  const at::Tensor squares = centred.square().sum(1);
  const at::Tensor host = centred.cpu(), host_labels = labels.cpu().contiguous();
  const float* values = host.const_data_ptr<float>();
  const int64_t* label = host_labels.const_data_ptr<int64_t>();
  std::unordered_map<int64_t, int64_t> members;
  for (int64_t i = 0; i < n; ++i) ++members[label[i]];

  const int64_t wanted = std::min(n, k + 1 + kSpare);
  std::vector<double> by_class(n), by_retrieved(n);
  for (int64_t first = 0; first < n; first += kQueries) {
    const int64_t count = std::min(kQueries, n - first);
    const at::Tensor distance =
        at::addmm(squares.unsqueeze(0), centred.narrow(0, first, count), centred.t(), 1, -2);
    const at::Tensor found =
        std::get<1>(distance.topk(wanted, 1, /*largest=*/false, /*sorted=*/false)).cpu();
    const int64_t* candidates = found.const_data_ptr<int64_t>();
    at::parallel_for(0, count, 8, [&](int64_t begin, int64_t end) {
      std::vector<std::pair<double, int64_t>> nearest;
      for (int64_t q = begin; q < end; ++q) {
        const int64_t query = first + q;
        nearest.clear();
        for (int64_t j = 0; j < wanted; ++j) {
          const int64_t other = candidates[q * wanted + j];
          if (other == query) continue;
          nearest.emplace_back(squared_distance(values + query * d, values + other * d, d), other);
        }
        std::sort(nearest.begin(), nearest.end());
        const Precision precision = average_precision(nearest, label, query, k);
        const int64_t others = members.at(label[query]) - 1;
        if (others > 0) by_class[query] = precision.sum / static_cast<double>(std::min(k, others));
        if (precision.relevant > 0) {
          by_retrieved[query] = precision.sum / static_cast<double>(precision.relevant);
        }
      }
    });
  }
  Retrieval out;
  for (int64_t i = 0; i < n; ++i) {
    out.map += by_class[i] / static_cast<double>(n);
    out.map_retrieved += by_retrieved[i] / static_cast<double>(n);
  }
  return out;
}

}  // namespace qact::metrics
