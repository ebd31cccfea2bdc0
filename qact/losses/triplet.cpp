#include "qact/losses/triplet.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "qact/losses/distances.h"

namespace qact::losses {
namespace {

int64_t below(base::Random& random, size_t count) {
  return static_cast<int64_t>(random.uniform() * static_cast<double>(count));
}

}  // namespace

at::Tensor random_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin,
                          base::Random& random) {
  const at::Tensor on_cpu = labels.cpu().contiguous();
  const int64_t* y = on_cpu.const_data_ptr<int64_t>();
  const int64_t n = on_cpu.numel();
  std::vector<int64_t> anchors, positives, negatives;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<int64_t> same, other;
    for (int64_t j = 0; j < n; ++j) {
      if (y[j] != y[i]) {
        other.push_back(j);
      } else if (j != i) {
        same.push_back(j);
      }
    }
    if (same.empty() || other.empty()) continue;
    anchors.push_back(i);
    positives.push_back(same[below(random, same.size())]);
    negatives.push_back(other[below(random, other.size())]);
  }
  if (anchors.empty()) return embedding.sum() * 0;
  const auto rows = [&](const std::vector<int64_t>& index) {
    return embedding.index_select(0, at::tensor(index, at::kLong).to(embedding.device()));
  };
  return at::triplet_margin_loss(rows(anchors), rows(positives), rows(negatives), margin);
}

at::Tensor hard_triplet(const at::Tensor& embedding, const at::Tensor& labels, double margin) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor distance = pairwise_distances(embedding);
  const at::Tensor same = labels.unsqueeze(0) == labels.unsqueeze(1);
  at::Tensor positive = same.clone();
  positive.fill_diagonal_(false);
  const at::Tensor farthest = distance.masked_fill(~positive, -kInfinity).argmax(1);
  const at::Tensor nearest = distance.masked_fill(same, kInfinity).argmin(1);
  const at::Tensor loss = at::triplet_margin_loss(embedding, embedding.index_select(0, farthest),
                                                  embedding.index_select(0, nearest), margin, 2.0,
                                                  1e-6, false, at::Reduction::None);
  const at::Tensor valid = positive.any(1).logical_and(same.logical_not().any(1));
  return loss.masked_fill(~valid, 0).sum() / valid.sum().clamp_min(1);
}

}  // namespace qact::losses
