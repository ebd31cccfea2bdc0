#include "qact/losses/watershed_labels.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace qact::losses {

std::vector<int64_t> draw_seeds(std::span<const int64_t> labels, int64_t seeds,
                                base::Random& random) {
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t i = 0; i < labels.size(); ++i) {
    members[labels[i]].push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> drawn;
  for (auto& [label, samples] : members) {
    const size_t wanted = std::min(samples.size(), static_cast<size_t>(seeds));
    for (size_t k = 0; k < wanted; ++k) {
      const double left = static_cast<double>(samples.size() - k);
      std::swap(samples[k], samples[k + static_cast<size_t>(random.uniform() * left)]);
      drawn.push_back(samples[k]);
    }
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

namespace {

// Makes u the parent of each sample that is nearer to u than to its parent. Returns the least
// distance of any sample to its parent, as bits: those of floats >= 0 are in the floats' order.
// Loops without branches, so that the compiler vectorises them.
int32_t relax(const float* __restrict row, int32_t u, int32_t n, const float* __restrict excluded,
              float* __restrict distance, int32_t* __restrict parent) {
  for (int32_t v = 0; v < n; ++v) {
    const float now = row[v] + excluded[v];
    const bool nearer = (now < distance[v]) | ((now == distance[v]) & (u < parent[v]));
    parent[v] = nearer ? u : parent[v];
    distance[v] = nearer ? now : distance[v];
  }
  int32_t least = std::numeric_limits<int32_t>::max();
  for (int32_t v = 0; v < n; ++v) least = std::min(least, std::bit_cast<int32_t>(distance[v]));
  return least;
}

}  // namespace

std::vector<int64_t> flood(const Distances& distances, std::span<const int64_t> labels,
                           std::span<const int64_t> seeds) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  constexpr int32_t kNone = -1;
  const int32_t n = static_cast<int32_t>(distances.count);
  std::vector<int64_t> flooded(n, kNone);
  if (seeds.empty()) return flooded;
  std::vector<int32_t> parent(n, static_cast<int32_t>(seeds[0]));
  // distance: to the parent, the nearest labelled sample. excluded: infinite for labelled samples.
  std::vector<float> distance(n, kFar), excluded(n, 0.0f);
  // Labels u and returns the unlabelled sample that is now nearest to a labelled one.
  const auto label_sample = [&](int32_t u, int64_t label) {
    flooded[u] = label;
    distance[u] = excluded[u] = kFar;
    const float* row = distances.values + static_cast<int64_t>(u) * n;
    const int32_t least = relax(row, u, n, excluded.data(), distance.data(), parent.data());
    for (int32_t v = 0; v < n; ++v) {
      if (std::bit_cast<int32_t>(distance[v]) == least && flooded[v] == kNone) return v;
    }
    return kNone;
  };
  int32_t next = kNone;
  for (const int64_t seed : seeds) next = label_sample(static_cast<int32_t>(seed), labels[seed]);
  while (next != kNone) next = label_sample(next, flooded[parent[next]]);
  return flooded;
}

std::vector<int64_t> nearest_correct(const Distances& distances, std::span<const int64_t> labels,
                                     std::span<const int64_t> flooded, int64_t classes) {
  const int64_t n = distances.count;
  std::vector<std::vector<int64_t>> correct(classes);
  for (int64_t j = 0; j < n; ++j) {
    if (flooded[j] == labels[j]) correct[labels[j]].push_back(j);
  }
  std::vector<int64_t> nearest(n * classes, -1);
  for (int64_t i = 0; i < n; ++i) {
    const float* row = distances.values + i * n;
    for (int64_t c = 0; c < classes; ++c) {
      int64_t best = -1;
      float least = 0;
      for (const int64_t j : correct[c]) {
        const bool nearer = j != i && (best < 0 || row[j] < least);
        best = nearer ? j : best;
        least = nearer ? row[j] : least;
      }
      nearest[i * classes + c] = best;
    }
  }
  return nearest;
}

}  // namespace qact::losses
