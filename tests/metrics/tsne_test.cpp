// t-SNE against scikit-learn's exact one, whose result scripts/tsne_fixtures.py stored. The two end
// in different local minima, so they are compared by their trustworthiness.
#include "qact/metrics/tsne.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "qact/data/factories.h"
#include "qact/metrics/neighbour_probabilities.h"
#include "qact/metrics/principal_components.h"

namespace qact::metrics {
namespace {

const nlohmann::json& fixture() {
  static const auto json =
      nlohmann::json::parse(std::ifstream(QACT_TEST_FIXTURES "/metrics/tsne.json"));
  return json;
}

struct Points {
  std::vector<float> values;
  int64_t dims;

  int64_t size() const { return static_cast<int64_t>(values.size()) / dims; }
};

Points digits() {
  const data::Split split = data::mnist_small().read("", {.split = data::SplitName::test});
  Points points{{}, split.size.values()};
  const int64_t every = fixture()["every"];
  for (int64_t i = 0; i < split.count(); i += every) {
    for (int64_t k = 0; k < points.dims; ++k) {
      points.values.push_back(static_cast<float>(split.image(i)[k]) / 255);
    }
  }
  return points;
}

// All other points, the nearest first.
std::vector<int64_t> by_distance(const Points& points, int64_t query) {
  std::vector<double> distance(points.size(), 0);
  for (int64_t i = 0; i < points.size(); ++i) {
    for (int64_t k = 0; k < points.dims; ++k) {
      distance[i] +=
          std::pow(points.values[i * points.dims + k] - points.values[query * points.dims + k], 2);
    }
  }
  distance[query] = -1;
  std::vector<int64_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return distance[a] < distance[b]; });
  order.erase(order.begin());
  return order;
}

// 1 - 2 / (n k (2n - 3k - 1)) sum of (rank in the space - k) over the plane's k nearest.
double trustworthiness(const Points& space, const Points& plane, int64_t k) {
  const int64_t n = space.size();
  double penalty = 0;
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<int64_t> near = by_distance(space, i), shown = by_distance(plane, i);
    std::vector<int64_t> rank(n);
    for (int64_t r = 0; r < n - 1; ++r) rank[near[r]] = r + 1;
    for (int64_t j = 0; j < k; ++j) penalty += std::max<int64_t>(0, rank[shown[j]] - k);
  }
  return 1 - penalty * 2 / static_cast<double>(n * k * (2 * n - 3 * k - 1));
}

TEST(Tsne, IsAsTrustworthyAsScikitLearnIs) {
  const Points space = digits();
  const int64_t k = fixture()["neighbours"];
  Points theirs{{}, 2};
  for (const auto& point : fixture()["plane"]) {
    for (const float v : point) theirs.values.push_back(v);
  }
  EXPECT_NEAR(trustworthiness(space, theirs, k), fixture()["trustworthiness"], 1e-4);
  // Theirs from five starts; the first two principal components alone have 0.76.
  double expected = fixture()["trustworthiness"];
  for (const double other : fixture()["of_other_starts"]) expected = std::min(expected, other);
  const Points ours{tsne(space.values, space.dims), 2};
  EXPECT_GT(trustworthiness(space, ours, k), expected - 0.005);
}

TEST(Tsne, TheSameBitsForAnyNumberOfThreads) {
  const Points space = digits();
  const std::vector<float> one = tsne(space.values, space.dims, {.iterations = 40, .threads = 1});
  EXPECT_EQ(tsne(space.values, space.dims, {.iterations = 40, .threads = 3}), one);
}

TEST(Tsne, AwkwardPoints) {
  EXPECT_TRUE(tsne({}, 3).empty());
  EXPECT_EQ(tsne(std::vector<float>{1, 2, 3}, 3), (std::vector<float>{0, 0}));
  for (const Points& points : {Points{{1, 2}, 1},                        // two
                               Points{std::vector<float>(40, 7.0f), 4},  // all the same
                               Points{{0, 0, 0, 1e6f, 1e6f, 5}, 1}}) {   // some the same
    for (const float v : tsne(points.values, points.dims)) EXPECT_TRUE(std::isfinite(v));
  }
}

TEST(Tsne, NamesWhatItCannotTake) {
  const auto message = [](std::vector<float> values, int64_t dims, TsneOptions options = {}) {
    try {
      tsne(values, dims, options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({1, 2, 3}, 2), "[tsne] expected whole points of 2 dimensions, got 3 values");
  EXPECT_EQ(message({1, 2, 3, std::numeric_limits<float>::infinity()}, 2),
            "[tsne] expected finite values, got inf in point 1");
  EXPECT_EQ(message(std::vector<float>(20'001), 1),
            "[tsne] expected at most 20000 points, got 20001");
  EXPECT_NE(message({1, 2}, 1, {.perplexity = 0}), "");
}

TEST(PrincipalComponents, HaveScikitLearnsVariances) {
  const Points space = digits();
  const std::vector<float> components = principal_components(space.values, space.dims, 50);
  const auto& variances = fixture()["variances"];
  for (size_t c = 0; c < variances.size(); ++c) {
    double squares = 0;
    for (int64_t i = 0; i < space.size(); ++i) squares += std::pow(components[i * 50 + c], 2);
    EXPECT_NEAR(squares / static_cast<double>(space.size() - 1), variances[c], 1e-3) << c;
  }
}

TEST(PrincipalComponents, KeepDistancesWhenAllAreTaken) {
  const Points space{{0, 0, 0, 3, 4, 0, -1, 2, 7, 5, 5, 5}, 3};
  const std::vector<float> rotated = principal_components(space.values, 3, 9);
  ASSERT_EQ(rotated.size(), space.values.size());
  for (int64_t i = 0; i < 4; ++i) {
    double before = 0, after = 0;
    for (int64_t k = 0; k < 3; ++k) {
      before += std::pow(space.values[3 * i + k] - space.values[k], 2);
      after += std::pow(rotated[3 * i + k] - rotated[k], 2);
    }
    EXPECT_NEAR(after, before, 1e-4);
  }
}

TEST(NeighbourProbabilities, HaveThePerplexity) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    std::vector<double> p;
    for (int i = 0; i < 50; ++i) p.push_back(scale * i * i);
    to_probabilities(p, 3, 10);
    double total = 0, entropy = 0;
    for (const double v : p) {
      total += v;
      if (v > 0) entropy -= v * std::log(v);
    }
    EXPECT_NEAR(total, 1, 1e-9);
    EXPECT_NEAR(std::exp(entropy), 10, 1e-3);
    EXPECT_EQ(p[3], 0);
  }
}

}  // namespace
}  // namespace qact::metrics
