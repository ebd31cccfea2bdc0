#include "qact/losses/watershed_labels.h"

#include <algorithm>
#include <map>

namespace qact::losses {

std::vector<int64_t> draw_seeds(std::span<const int64_t> labels, int64_t seeds,
                                core::Random& random) {
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

std::vector<int64_t> flood(const Distances& distances, std::span<const int64_t> labels,
                           std::span<const int64_t> seeds) {
  const int64_t n = distances.count;
  constexpr int64_t kNone = -1;
  std::vector<int64_t> flooded(n, kNone), parent(n, kNone);
  std::vector<double> distance(n);  // to the parent: the nearest labelled sample
  // Labels u and returns the unlabelled sample that is now nearest to a labelled one.
  const auto settle = [&](int64_t u, int64_t label) {
    flooded[u] = label;
    int64_t next = kNone;
    for (int64_t v = 0; v < n; ++v) {
      if (flooded[v] != kNone) continue;
      const double now = distances(u, v);
      if (parent[v] == kNone || now < distance[v] || (now == distance[v] && u < parent[v])) {
        parent[v] = u;
        distance[v] = now;
      }
      if (next == kNone || distance[v] < distance[next]) next = v;
    }
    return next;
  };
  int64_t next = kNone;
  for (const int64_t seed : seeds) next = settle(seed, labels[seed]);
  while (next != kNone) next = settle(next, flooded[parent[next]]);
  return flooded;
}

std::vector<int64_t> nearest_correct(const Distances& distances, std::span<const int64_t> labels,
                                     std::span<const int64_t> flooded, int64_t classes) {
  const int64_t n = distances.count;
  std::vector<int64_t> nearest(n * classes, -1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t* row = nearest.data() + i * classes;
    for (int64_t j = 0; j < n; ++j) {
      if (j == i || flooded[j] != labels[j]) continue;
      int64_t& best = row[labels[j]];
      if (best < 0 || distances(i, j) < distances(i, best)) best = j;
    }
  }
  return nearest;
}

}  // namespace qact::losses
