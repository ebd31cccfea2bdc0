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

// Lets u be the parent of the samples that it is nearer to than theirs; the least distance of
// any sample to its parent, as the bits of a float >= 0, which are in its order. Loops without
// branches, which the compiler makes vectors of.
int32_t relax(const float* __restrict row, int32_t u, int32_t n, const float* __restrict gone,
              float* __restrict distance, int32_t* __restrict parent) {
  for (int32_t v = 0; v < n; ++v) {
    const float now = row[v] + gone[v];
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
  // To the parent, the nearest labelled sample. A labelled one is infinitely far from all.
  std::vector<float> distance(n, kFar), gone(n, 0.0f);
  // Labels u and returns the unlabelled sample that is now nearest to a labelled one.
  const auto settle = [&](int32_t u, int64_t label) {
    flooded[u] = label;
    distance[u] = gone[u] = kFar;
    const float* row = distances.values + static_cast<int64_t>(u) * n;
    const int32_t least = relax(row, u, n, gone.data(), distance.data(), parent.data());
    for (int32_t v = 0; v < n; ++v) {
      if (std::bit_cast<int32_t>(distance[v]) == least && flooded[v] == kNone) return v;
    }
    return kNone;
  };
  int32_t next = kNone;
  for (const int64_t seed : seeds) next = settle(static_cast<int32_t>(seed), labels[seed]);
  while (next != kNone) next = settle(next, flooded[parent[next]]);
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
