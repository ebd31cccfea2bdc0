#include "qact/losses/watershed.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/losses/watershed_labels.h"

namespace qact::losses {
namespace {

using Indices = std::vector<int64_t>;

// All pairs of a labelled and an unlabelled sample, again for every step.
Indices naive_flood(const Distances& distances, const Indices& labels, const Indices& seeds) {
  const int64_t n = distances.count;
  Indices flooded(n, -1);
  for (const int64_t seed : seeds) flooded[seed] = labels[seed];
  for (;;) {
    int64_t best_v = -1, best_u = -1;
    for (int64_t v = 0; v < n; ++v) {
      for (int64_t u = 0; u < n; ++u) {
        if (flooded[v] != -1 || flooded[u] == -1) continue;
        if (best_v < 0 || distances(u, v) < distances(best_u, best_v)) best_v = v, best_u = u;
      }
    }
    if (best_v < 0) return flooded;
    flooded[best_v] = flooded[best_u];
  }
}

// The smallest possible largest edge on a way from each sample to each other.
std::vector<double> lowest_passes(const Distances& distances) {
  const int64_t n = distances.count;
  std::vector<double> pass(distances.values, distances.values + n * n);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        pass[i * n + j] = std::min(pass[i * n + j], std::max(pass[i * n + k], pass[k * n + j]));
      }
    }
  }
  return pass;
}

struct Sample {
  torch::Tensor embedding, distances;
  Indices labels;

  Distances view() const { return {distances.const_data_ptr<float>(), distances.size(0)}; }
};

// Points on a coarse grid have many equal distances.
Sample make_sample(int64_t n, int64_t classes, bool grid, uint64_t seed) {
  torch::manual_seed(seed);
  Sample sample;
  sample.embedding = torch::randn({n, 2}, torch::kDouble);
  if (grid) sample.embedding = (2 * sample.embedding).round();
  sample.distances = (sample.embedding.unsqueeze(1) - sample.embedding.unsqueeze(0))
                         .square()
                         .sum(2)
                         .sqrt()
                         .to(torch::kFloat);
  for (int64_t i = 0; i < n; ++i) sample.labels.push_back((i * 7 + i / 3) % classes);
  return sample;
}

TEST(Flood, IsTheNaiveOne) {
  for (const int64_t n : {1, 2, 3, 17, 40}) {
    for (const int64_t classes : {1, 2, 5}) {
      for (const int64_t seeds : {1, 2, 100}) {
        for (const bool grid : {false, true}) {
          const Sample sample = make_sample(n, classes, grid, 10 * n + classes);
          base::Random random(n, seeds);
          const Indices drawn = draw_seeds(sample.labels, seeds, random);
          EXPECT_EQ(flood(sample.view(), sample.labels, drawn),
                    naive_flood(sample.view(), sample.labels, drawn))
              << n << " " << classes << " " << seeds << " " << grid;
        }
      }
    }
  }
}

TEST(Flood, ReachesEachSampleOverItsLowestPass) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const Sample sample = make_sample(30, 4, seed % 2 == 0, seed);
    base::Random random(seed, 0);
    const Indices seeds = draw_seeds(sample.labels, 2, random);
    const Indices flooded = flood(sample.view(), sample.labels, seeds);
    const auto pass = lowest_passes(sample.view());
    for (int64_t v = 0; v < 30; ++v) {
      double own = std::numeric_limits<double>::infinity(), any = own;
      for (const int64_t s : seeds) {
        any = std::min(any, pass[s * 30 + v]);
        if (sample.labels[s] == flooded[v]) own = std::min(own, pass[s * 30 + v]);
      }
      EXPECT_EQ(own, any) << v;
    }
  }
}

TEST(Seeds, AreDistinctAndOfEachClass) {
  const Indices labels = {4, 4, 9, 4, 9, 0};
  std::map<int64_t, int64_t> drawn_first;
  base::Random random(3, 1);
  for (int round = 0; round < 300; ++round) {
    const Indices seeds = draw_seeds(labels, 2, random);
    ASSERT_EQ(seeds.size(), 5u);
    EXPECT_EQ(std::set<int64_t>(seeds.begin(), seeds.end()).size(), 5u);
    const Indices one = draw_seeds(labels, 1, random);
    ASSERT_EQ(one.size(), 3u);
    for (const int64_t seed : one) ++drawn_first[seed];
  }
  EXPECT_EQ(drawn_first[5], 300);
  for (const int64_t i : {0, 1, 3}) EXPECT_NEAR(drawn_first[i], 100, 30);
}

// The definition in plain loops.
double naive_loss(const Sample& sample, int64_t classes, const Indices& flooded) {
  const auto place = sample.embedding.accessor<double, 2>();
  const int64_t n = sample.embedding.size(0);
  const auto squared = [&](int64_t i, int64_t j) {
    return std::pow(place[i][0] - place[j][0], 2) + std::pow(place[i][1] - place[j][1], 2);
  };
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    double total = 0, own = -1;
    for (int64_t l = 0; l < classes; ++l) {
      double best = std::numeric_limits<double>::infinity();
      for (int64_t j = 0; j < n; ++j) {
        if (j != i && sample.labels[j] == l && flooded[j] == l) {
          best = std::min(best, std::sqrt(squared(i, j) + 1e-12));
        }
      }
      total += std::exp(-best);
      if (l == sample.labels[i] && std::isfinite(best)) own = best;
    }
    if (own < 0) continue;
    sum += own + std::log(total);
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

TEST(Watershed, IsTheDefinition) {
  for (const int64_t n : {2, 9, 40}) {
    for (const int64_t classes : {1, 3, 8}) {
      const Sample sample = make_sample(n, classes, false, n);
      base::Random random(7, n), again(7, n);
      const Indices flooded =
          naive_flood(sample.view(), sample.labels, draw_seeds(sample.labels, 1, again));
      // Labels need not be 0, 1, ...: classes that are absent drop out.
      const torch::Tensor labels = torch::tensor(sample.labels) * 3 + 5;
      EXPECT_NEAR(watershed(sample.embedding, labels, 1, random).item<double>(),
                  naive_loss(sample, classes, flooded), 1e-12)
          << n << " " << classes;
    }
  }
}

}  // namespace
}  // namespace qact::losses
