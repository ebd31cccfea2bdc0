#include "qact/metrics/nearest_neighbours.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace qact::metrics {
namespace {

constexpr int64_t kExtra = 32;     // candidates beyond k in the first search
constexpr int64_t kMore = 8;       // times as many in each further search
constexpr int64_t kQueries = 512;  // at a time

// Eight partial sums, which compilers vectorise; always added in the same order.
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

// Groups embeddings that are equal bit for bit, so that each is searched for once: a collapsed
// network has few distinct ones.
struct Distinct {
  std::vector<int64_t> first;                 // index of the first embedding of each group
  std::vector<std::vector<int64_t>> members;  // of each group
  std::vector<int64_t> group_of;              // each embedding

  explicit Distinct(const at::Tensor& host) {
    const auto row_bytes = static_cast<size_t>(host.size(1)) * sizeof(float);
    const char* const bytes = static_cast<const char*>(host.const_data_ptr());
    std::unordered_map<std::string_view, int64_t> known;
    for (int64_t i = 0; i < host.size(0); ++i) {
      const auto [found, fresh] =
          known.try_emplace({bytes + i * row_bytes, row_bytes}, known.size());
      if (fresh) {
        first.push_back(i);
        members.emplace_back();
      }
      members[found->second].push_back(i);
      group_of.push_back(found->second);
    }
  }

  int64_t count() const { return static_cast<int64_t>(first.size()); }
};

// Squared distances from matrix products, in one precision, on the points' device.
class ProductDistances {
 public:
  // Centred points have small squares, whose differences have small rounding errors.
  ProductDistances(const at::Tensor& points, at::ScalarType type)
      : points_(points.to(type) - points.to(type).mean(0)),
        squares_(points_.square().sum(1)),
        host_squares_(squares_.to(at::kDouble).cpu()),
        unit_(type == at::kFloat ? 0x1p-24 : 0x1p-53),
        smallest_(type == at::kFloat ? std::numeric_limits<float>::min()
                                     : std::numeric_limits<double>::min()) {}

  // The `count` candidates nearest to each query, (queries, count), in any order, and the largest
  // distance among them, both on the CPU. The distance here is |x|^2 - 2 q x, the squared one minus
  // |q|^2.
  std::pair<at::Tensor, at::Tensor> candidates(std::span<const int64_t> queries,
                                               int64_t count) const {
    const at::NoTF32Guard full_precision;
    const at::Tensor rows =
        at::tensor(at::ArrayRef<int64_t>(queries.data(), queries.size())).to(points_.device());
    const at::Tensor distances = at::addmm(squares_.unsqueeze(0), points_.index_select(0, rows),
                                           points_.t(), /*beta=*/1, /*alpha=*/-2);
    const auto [nearest, found] = distances.topk(count, 1, /*largest=*/false, /*sorted=*/false);
    return {found.cpu(), nearest.amax(1).to(at::kDouble).cpu()};
  }

  // Whether rounding cannot have hidden a neighbour: all points beyond `end`, the candidates'
  // largest distance, are farther from the query than the squared distance `reach`. A sum of d
  // products has an error of at most d units of the products' magnitudes, in any order; a point
  // within reach has a norm of at most |q| + sqrt(reach).
  bool complete(int64_t query, double reach, double end) const {
    const auto d = static_cast<double>(points_.size(1));
    const double square = host_squares_.const_data_ptr<double>()[query];
    const double norm = std::sqrt(square) + std::sqrt(reach);
    const double error = 2 * (d + 8) * unit_ * (square + norm * norm) + d * smallest_;
    return std::isfinite(end) && end > reach - square + error;
  }

 private:
  const at::Tensor points_, squares_, host_squares_;
  const double unit_, smallest_;
};

// Matrix products give candidates, whose distances are then computed exactly. Where rounding might
// have hidden a neighbour, the search is repeated in double precision, then with more candidates,
// in the end with all.
class Search {
 public:
  Search(const at::Tensor& embeddings, int64_t k)
      : n_(embeddings.size(0)),
        d_(embeddings.size(1)),
        k_(std::min(k, n_ - 1)),
        values_(embeddings.cpu()),
        distinct_(values_),
        nearest_(distinct_.count()) {
    const at::Tensor rows = at::tensor(distinct_.first).to(embeddings.device());
    points_ = embeddings.index_select(0, rows);
  }

  std::vector<int64_t> run() {
    std::vector<int64_t> unresolved(distinct_.count());
    std::iota(unresolved.begin(), unresolved.end(), 0);
    int64_t count = k_ + 1 + kExtra;
    unresolved = resolve(unresolved, ProductDistances(points_, at::kFloat), count);
    if (!unresolved.empty()) {
      const ProductDistances precise(points_, at::kDouble);
      for (; !unresolved.empty(); count *= kMore) unresolved = resolve(unresolved, precise, count);
    }
    return without_themselves();
  }

 private:
  using Candidate = std::pair<double, int64_t>;  // the squared distance and index of an embedding

  // Returns the queries that `count` candidates leave unresolved.
  std::vector<int64_t> resolve(const std::vector<int64_t>& queries,
                               const ProductDistances& products, int64_t count) {
    count = std::min(count, distinct_.count());
    std::vector<int64_t> unresolved;
    const std::span<const int64_t> all(queries);
    for (size_t first = 0; first < all.size(); first += kQueries) {
      const auto some = all.subspan(first, std::min<size_t>(kQueries, all.size() - first));
      const std::vector<uint8_t> resolved = resolve_some(some, products, count);
      for (size_t q = 0; q < some.size(); ++q) {
        if (!resolved[q]) unresolved.push_back(some[q]);
      }
    }
    return unresolved;
  }

  std::vector<uint8_t> resolve_some(std::span<const int64_t> queries,
                                    const ProductDistances& products, int64_t count) {
    const auto [candidates, ends] = products.candidates(queries, count);
    const int64_t* const candidate = candidates.const_data_ptr<int64_t>();
    const double* const end = ends.const_data_ptr<double>();
    std::vector<uint8_t> resolved(queries.size());
    at::parallel_for(0, static_cast<int64_t>(queries.size()), 8, [&](int64_t from, int64_t to) {
      for (int64_t q = from; q < to; ++q) {
        const double reach =
            measure(queries[q], {candidate + q * count, static_cast<size_t>(count)});
        resolved[q] = count == distinct_.count() || products.complete(queries[q], reach, end[q]);
      }
    });
    return resolved;
  }

  // Finds the nearest k + 1, the query among them, and returns the distance of the last one.
  double measure(int64_t query, std::span<const int64_t> candidates) {
    const float* const values = values_.const_data_ptr<float>();
    const float* const from = values + distinct_.first[query] * d_;
    std::vector<Candidate> order;
    for (const int64_t point : candidates) {
      const double distance = squared_distance(from, values + distinct_.first[point] * d_, d_);
      for (const int64_t member : distinct_.members[point]) order.emplace_back(distance, member);
    }
    std::partial_sort(order.begin(), order.begin() + k_ + 1, order.end());
    std::vector<int64_t>& nearest = nearest_[query];
    nearest.clear();
    for (int64_t j = 0; j <= k_; ++j) nearest.push_back(order[j].second);
    return order[k_].first;
  }

  // The neighbours of each embedding are those of its group, without the embedding itself.
  std::vector<int64_t> without_themselves() const {
    std::vector<int64_t> out;
    out.reserve(n_ * k_);
    for (int64_t i = 0; i < n_; ++i) {
      const std::vector<int64_t>& nearest = nearest_[distinct_.group_of[i]];
      const size_t end = out.size() + k_;
      for (size_t j = 0; out.size() < end; ++j) {
        if (nearest[j] != i) out.push_back(nearest[j]);
      }
    }
    return out;
  }

  const int64_t n_, d_, k_;
  const at::Tensor values_;  // on the CPU
  const Distinct distinct_;
  at::Tensor points_;  // the distinct ones, on the embeddings' device
  std::vector<std::vector<int64_t>> nearest_;
};

}  // namespace

std::vector<int64_t> nearest_neighbours(const at::Tensor& embeddings, int64_t k) {
  if (embeddings.size(0) == 0) return {};
  return Search(embeddings.detach().to(at::kFloat).contiguous(), k).run();
}

}  // namespace qact::metrics
