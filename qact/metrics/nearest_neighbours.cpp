#include "qact/metrics/nearest_neighbours.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace qact::metrics {
namespace {

constexpr int64_t kSpare = 32;     // proposed beyond those wanted, at first
constexpr int64_t kMore = 8;       // times as many for queries that this leaves open
constexpr int64_t kQueries = 512;  // at a time

// Eight sums side by side, which compilers turn into vectors; added in one order everywhere.
double squared_distance(const float* a, const float* b, int64_t d) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  const int64_t whole = d - d % kSums;
  for (int64_t i = 0; i < whole; i += kSums) {
    for (int64_t s = 0; s < kSums; ++s) {
      const double gap = static_cast<double>(a[i + s]) - b[i + s];
      sums[s] += gap * gap;
    }
  }
  for (int64_t i = whole; i < d; ++i) {
    const double gap = static_cast<double>(a[i]) - b[i];
    sums[i - whole] += gap * gap;
  }
  return std::accumulate(sums, sums + kSums, 0.0);
}

// A matrix product proposes neighbours, their distances are computed again, and rounding is
// given its bound: what it might have hidden is looked for among more, in the end among all.
class Search {
 public:
  Search(const at::Tensor& embeddings, int64_t k)
      : n_(embeddings.size(0)), d_(embeddings.size(1)), k_(std::min(k, n_ - 1)) {
    const at::Tensor all = embeddings.detach().to(at::kFloat).contiguous();
    // Centred, squares are small, and so are the rounding errors of their differences.
    centred_ = all - all.mean(0);
    squares_ = centred_.square().sum(1);
    values_ = all.cpu();
    host_squares_ = squares_.cpu();
    nearest_.resize(n_ * k_);
  }

  std::vector<int64_t> run() {
    std::vector<int64_t> open(n_);
    std::iota(open.begin(), open.end(), 0);
    for (int64_t wanted = k_ + 1 + kSpare; !open.empty(); wanted *= kMore) {
      open = settle(open, std::min(wanted, n_));
    }
    return std::move(nearest_);
  }

 private:
  using Candidate = std::pair<double, int64_t>;  // its squared distance and index

  // Returns the queries that so many proposals leave open.
  std::vector<int64_t> settle(const std::vector<int64_t>& queries, int64_t proposals) {
    std::vector<int64_t> open;
    const std::span<const int64_t> all(queries);
    for (size_t first = 0; first < all.size(); first += kQueries) {
      const auto some = all.subspan(first, std::min<size_t>(kQueries, all.size() - first));
      const std::vector<uint8_t> settled = settle_some(some, proposals);
      for (size_t q = 0; q < some.size(); ++q) {
        if (!settled[q]) open.push_back(some[q]);
      }
    }
    return open;
  }

  std::vector<uint8_t> settle_some(std::span<const int64_t> queries, int64_t proposals) {
    const at::NoTF32Guard whole_floats;
    const at::Tensor rows = centred_.index_select(
        0, at::tensor(at::ArrayRef<int64_t>(queries.data(), queries.size())).to(centred_.device()));
    // |x|^2 - 2 q x: the squared distance less |q|^2.
    const at::Tensor distance = at::addmm(squares_.unsqueeze(0), rows, centred_.t(), 1, -2);
    const auto [nearest, found] = distance.topk(proposals, 1, /*largest=*/false, /*sorted=*/false);
    const at::Tensor candidates = found.cpu(), ends = nearest.amax(1).cpu();
    const int64_t* const candidate = candidates.const_data_ptr<int64_t>();
    const float* const end = ends.const_data_ptr<float>();

    std::vector<uint8_t> settled(queries.size());
    at::parallel_for(0, static_cast<int64_t>(queries.size()), 8, [&](int64_t from, int64_t to) {
      std::vector<Candidate> order;
      for (int64_t q = from; q < to; ++q) {
        measure(queries[q], {candidate + q * proposals, static_cast<size_t>(proposals)}, &order);
        for (int64_t j = 0; j < k_; ++j) nearest_[queries[q] * k_ + j] = order[j].second;
        settled[q] = proposals == n_ || none_hidden(queries[q], order[k_ - 1].first, end[q]);
      }
    });
    return settled;
  }

  // The first k in order.
  void measure(int64_t query, std::span<const int64_t> candidates,
               std::vector<Candidate>* order) const {
    const float* const values = values_.const_data_ptr<float>();
    order->clear();
    for (const int64_t other : candidates) {
      if (other == query) continue;
      order->emplace_back(squared_distance(values + query * d_, values + other * d_, d_), other);
    }
    std::partial_sort(order->begin(), order->begin() + k_, order->end());
  }

  // Whether all that was not proposed, from `end` on, is farther away than the k-th, at `kth`.
  // Sums of d products of floats err by d 2^-24 of the products' magnitudes, in any order; one
  // at that distance has a norm of |q| + sqrt(kth) at most.
  bool none_hidden(int64_t query, double kth, float end) const {
    const double unit = 2 * static_cast<double>(d_ + 8) * 0x1p-24;
    const double square = host_squares_.const_data_ptr<float>()[query];
    const double norm = std::sqrt(square) + std::sqrt(kth);
    const double error =
        unit * (square + norm * norm) + static_cast<double>(d_) * std::numeric_limits<float>::min();
    return std::isfinite(end) && end > kth - square + error;
  }

  const int64_t n_, d_, k_;
  at::Tensor centred_, squares_;      // on the embeddings' device
  at::Tensor values_, host_squares_;  // on the CPU
  std::vector<int64_t> nearest_;
};

}  // namespace

std::vector<int64_t> nearest_neighbours(const at::Tensor& embeddings, int64_t k) {
  if (embeddings.size(0) == 0) return {};
  return Search(embeddings, k).run();
}

}  // namespace qact::metrics
