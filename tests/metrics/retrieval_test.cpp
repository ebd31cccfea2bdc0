#include "qact/metrics/retrieval.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qact/metrics/nearest_neighbours.h"
#include "tests/metrics/reference_retrieval.h"

namespace qact::metrics {
namespace {

TEST(Retrieval, AgreesWithTorchmetrics) {
  const auto json = nlohmann::json::parse(std::ifstream(QACT_TEST_FIXTURES "/metrics/scores.json"));
  std::vector<float> flat;
  for (const auto& row : json["embeddings"]) {
    for (const float v : row) flat.push_back(v);
  }
  const std::vector<int64_t> labels = json["embedding_labels"];
  const auto n = static_cast<int64_t>(labels.size());
  const torch::Tensor embeddings = torch::tensor(flat).view({n, -1});
  for (const auto& expected : json["retrieval"]) {
    const Retrieval found = map_at_k(embeddings, torch::tensor(labels), expected["k"]);
    EXPECT_NEAR(found.map, expected["map"], 1e-6) << expected["k"];
    EXPECT_NEAR(found.map_retrieved, expected["map_retrieved"], 1e-6) << expected["k"];
  }
}

struct Case {
  const char* name;
  torch::Tensor embeddings;
};

// Ties, and what rounding makes of differences of large numbers.
std::vector<Case> awkward_cases() {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({200, 19});
  torch::Tensor outlier = x.clone();
  outlier[7].fill_(1e6);
  return {{"noise", x},
          {"one value each", torch::randn({200, 1})},
          {"one", torch::randn({1, 4})},
          {"two", torch::randn({2, 4})},
          {"fewer than k", torch::randn({3, 4})},
          {"whole numbers", torch::randint(0, 3, {200, 3}).to(torch::kFloat)},
          {"all equal", torch::full({200, 5}, 0.1)},
          {"equal but for one", torch::cat({torch::zeros({199, 5}), torch::ones({1, 5})})},
          {"each forty times", torch::randn({5, 8}).repeat({40, 1})},
          {"far from the origin", x * 1e-3 + 1e4},
          {"tight classes", 10 * torch::randn({2, 19}).repeat({100, 1}) + x * 1e-5},
          {"an outlier", outlier},
          {"squares below the smallest float", x * 1e-30},
          {"squares beyond the largest", x * 1e25},
          {"double", x.to(torch::kDouble)},
          {"bfloat16", x.to(torch::kBFloat16)}};
}

TEST(Retrieval, IsTheReference) {
  for (const Case& c : awkward_cases()) {
    const int64_t n = c.embeddings.size(0);
    std::vector<int64_t> labels(n);
    for (int64_t i = 0; i < n; ++i) labels[i] = i * i % 7;
    for (const int64_t k : {int64_t{1}, int64_t{5}, int64_t{100}}) {
      EXPECT_EQ(nearest_neighbours(c.embeddings, k), reference_neighbours(c.embeddings, k))
          << c.name << " " << k;
    }
    const Retrieval found = map_at_k(c.embeddings, torch::tensor(labels), 50);
    const Retrieval expected = reference_map(c.embeddings, labels, 50);
    EXPECT_NEAR(found.map, expected.map, 1e-12) << c.name;
    EXPECT_NEAR(found.map_retrieved, expected.map_retrieved, 1e-12) << c.name;
  }
}

TEST(Retrieval, IsTheSameOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP();
  for (const Case& c : awkward_cases()) {
    EXPECT_EQ(nearest_neighbours(c.embeddings.cuda(), 50), nearest_neighbours(c.embeddings, 50))
        << c.name;
  }
}

TEST(Retrieval, SeparatedClassesArePerfectAndLonersCountNothing) {
  const torch::Tensor embeddings = torch::tensor({{0.f}, {1.f}, {10.f}, {11.f}, {100.f}});
  const Retrieval found = map_at_k(embeddings, torch::tensor({0, 0, 1, 1, 2}), 1);
  EXPECT_NEAR(found.map, 0.8, 1e-12);
}

TEST(Retrieval, EmptyAndBadInput) {
  EXPECT_TRUE(std::isnan(map_at_k(torch::zeros({0, 3}), torch::zeros({0}, torch::kLong)).map));
  const torch::Tensor infinite = torch::full({3, 2}, INFINITY);
  EXPECT_TRUE(std::isnan(map_at_k(infinite, torch::zeros({3}, torch::kLong)).map));
  EXPECT_THROW(map_at_k(torch::zeros({3}), torch::zeros({3}, torch::kLong)), c10::Error);
  EXPECT_THROW(map_at_k(torch::zeros({3, 2}), torch::zeros({2}, torch::kLong)), c10::Error);
  EXPECT_THROW(map_at_k(torch::zeros({3, 2}), torch::zeros({3}, torch::kLong), 0), c10::Error);
}

TEST(Retrieval, TheSameBitsForAnyNumberOfThreads) {
  torch::manual_seed(1);
  const torch::Tensor embeddings = torch::randn({600, 16});
  const torch::Tensor labels = torch::randint(0, 5, {600}, torch::kLong);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = map_at_k(embeddings, labels).map;
  at::set_num_threads(3);
  EXPECT_EQ(map_at_k(embeddings, labels).map, one);
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace qact::metrics
