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

constexpr int64_t kSpare = 32;     // proposed beyond those wanted, at first
constexpr int64_t kMore = 8;       // times as many for points that this leaves open
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

// Embeddings and which of them are equal, bit for bit: a network that collapses has few that are
// not, and each is looked for once.
struct Distinct {
  std::vector<int64_t> first;                 // of each distinct one
  std::vector<std::vector<int64_t>> members;  // of each
  std::vector<int64_t> of;                    // for each embedding, which distinct one it is

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
      of.push_back(found->second);
    }
  }

  int64_t count() const { return static_cast<int64_t>(first.size()); }
};

// Squared distances from matrix products, in one precision, on the points' device.
class Products {
 public:
  // Centred, squares are small, and so are the rounding errors of their differences.
  Products(const at::Tensor& points, at::ScalarType type)
      : points_(points.to(type) - points.to(type).mean(0)),
        squares_(points_.square().sum(1)),
        host_squares_(squares_.to(at::kDouble).cpu()),
        unit_(type == at::kFloat ? 0x1p-24 : 0x1p-53),
        smallest_(type == at::kFloat ? std::numeric_limits<float>::min()
                                     : std::numeric_limits<double>::min()) {}

  // The points nearest to each query, (queries, count), in any order, and where they end, both
  // on the CPU: |x|^2 - 2 q x, the squared distance less |q|^2.
  std::pair<at::Tensor, at::Tensor> propose(std::span<const int64_t> queries, int64_t count) const {
    const at::NoTF32Guard whole_floats;
    const at::Tensor rows =
        at::tensor(at::ArrayRef<int64_t>(queries.data(), queries.size())).to(points_.device());
    const at::Tensor distances = at::addmm(squares_.unsqueeze(0), points_.index_select(0, rows),
                                           points_.t(), /*beta=*/1, /*alpha=*/-2);
    const auto [nearest, found] = distances.topk(count, 1, /*largest=*/false, /*sorted=*/false);
    return {found.cpu(), nearest.amax(1).to(at::kDouble).cpu()};
  }

  // Whether all that was not proposed, from `end` on, is farther from the query than the squared
  // distance `reach`. Sums of d products err by d units of the products' magnitudes, in any
  // order; a point within reach has a norm of |q| + sqrt(reach) at most.
  bool none_hidden(int64_t query, double reach, double end) const {
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

// Matrix products propose neighbours, whose distances are computed again; what rounding might
// have hidden is looked for in double precision, then among more, in the end among all.
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
    std::vector<int64_t> open(distinct_.count());
    std::iota(open.begin(), open.end(), 0);
    int64_t proposals = k_ + 1 + kSpare;
    open = settle(open, Products(points_, at::kFloat), proposals);
    if (!open.empty()) {
      const Products precise(points_, at::kDouble);
      for (; !open.empty(); proposals *= kMore) open = settle(open, precise, proposals);
    }
    return without_themselves();
  }

 private:
  using Candidate = std::pair<double, int64_t>;  // the squared distance and index of an embedding

  // Returns the distinct points among `queries` that so many proposals leave open.
  std::vector<int64_t> settle(const std::vector<int64_t>& queries, const Products& products,
                              int64_t proposals) {
    proposals = std::min(proposals, distinct_.count());
    std::vector<int64_t> open;
    const std::span<const int64_t> all(queries);
    for (size_t first = 0; first < all.size(); first += kQueries) {
      const auto some = all.subspan(first, std::min<size_t>(kQueries, all.size() - first));
      const std::vector<uint8_t> settled = settle_some(some, products, proposals);
      for (size_t q = 0; q < some.size(); ++q) {
        if (!settled[q]) open.push_back(some[q]);
      }
    }
    return open;
  }

  std::vector<uint8_t> settle_some(std::span<const int64_t> queries, const Products& products,
                                   int64_t proposals) {
    const auto [candidates, ends] = products.propose(queries, proposals);
    const int64_t* const candidate = candidates.const_data_ptr<int64_t>();
    const double* const end = ends.const_data_ptr<double>();
    std::vector<uint8_t> settled(queries.size());
    at::parallel_for(0, static_cast<int64_t>(queries.size()), 8, [&](int64_t from, int64_t to) {
      for (int64_t q = from; q < to; ++q) {
        const double reach =
            measure(queries[q], {candidate + q * proposals, static_cast<size_t>(proposals)});
        settled[q] =
            proposals == distinct_.count() || products.none_hidden(queries[q], reach, end[q]);
      }
    });
    return settled;
  }

  // Keeps the nearest k + 1, the query among them, and returns the last one's distance.
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

  // Of each embedding, the nearest of its distinct point but itself.
  std::vector<int64_t> without_themselves() const {
    std::vector<int64_t> out;
    out.reserve(n_ * k_);
    for (int64_t i = 0; i < n_; ++i) {
      const std::vector<int64_t>& nearest = nearest_[distinct_.of[i]];
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
