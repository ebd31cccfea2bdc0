#include "qact/metrics/retrieval.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace qact::metrics {
namespace {

TEST(Retrieval, AgreesWithTorchmetricsAndWithPlainCode) {
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

TEST(Retrieval, SeparatedClassesArePerfectAndLonersCountNothing) {
  const torch::Tensor embeddings = torch::tensor({{0.f}, {1.f}, {10.f}, {11.f}, {100.f}});
  const Retrieval found = map_at_k(embeddings, torch::tensor({0, 0, 1, 1, 2}), 1);
  EXPECT_NEAR(found.map, 0.8, 1e-12);
}

TEST(Retrieval, EmptyAndBadInput) {
  EXPECT_TRUE(std::isnan(map_at_k(torch::zeros({0, 3}), torch::zeros({0}, torch::kLong)).map));
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
