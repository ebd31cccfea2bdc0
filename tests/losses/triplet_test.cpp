#include "qact/losses/triplet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace qact::losses {
namespace {

double distance(const torch::Tensor& e, int64_t i, int64_t j) {
  return (e[i] - e[j]).norm().item<double>();
}

TEST(HardTriplet, TakesTheFarthestOfItsOwnAndTheNearestOther) {
  torch::manual_seed(1);
  const torch::Tensor e = torch::randn({15, 3}, torch::kDouble);
  // Class 3 has one sample: no anchor, but a partner.
  const std::vector<int64_t> y = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 3};
  for (const double margin : {0.0, 0.5, 2.0}) {
    double sum = 0;
    for (int64_t i = 0; i < 14; ++i) {
      double far = 0, near = 1e9;
      for (int64_t j = 0; j < 15; ++j) {
        if (j == i) continue;
        if (y[j] == y[i]) {
          far = std::max(far, distance(e, i, j));
        } else {
          near = std::min(near, distance(e, i, j));
        }
      }
      sum += std::max(0.0, far - near + margin);
    }
    // Torch adds 1e-6 to each difference.
    EXPECT_NEAR(hard_triplet(e, torch::tensor(y), margin).item<double>(), sum / 14, 1e-5);
  }
}

TEST(RandomTriplet, HasTheMeanOverAllTriplets) {
  torch::manual_seed(2);
  const torch::Tensor e = torch::randn({6, 2}, torch::kDouble);
  const torch::Tensor y = torch::tensor({0, 0, 1, 1, 1, 2});
  double expected = 0;
  const int64_t anchors = 5;
  for (int64_t i = 0; i < anchors; ++i) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t p = 0; p < 6; ++p) {
      for (int64_t n = 0; n < 6; ++n) {
        if (p == i || y[p].item<int64_t>() != y[i].item<int64_t>()) continue;
        if (y[n].item<int64_t>() == y[i].item<int64_t>()) continue;
        sum += std::max(0.0, distance(e, i, p) - distance(e, i, n) + 1.0);
        ++count;
      }
    }
    expected += sum / count / anchors;
  }
  base::Random random(4, 0);
  double mean = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    mean += random_triplet(e, y, 1.0, random).item<double>() / kRounds;
  }
  EXPECT_NEAR(mean, expected, 0.05);
  base::Random one(9, 0), same(9, 0);
  EXPECT_EQ(random_triplet(e, y, 1.0, one).item<double>(),
            random_triplet(e, y, 1.0, same).item<double>());
}

}  // namespace
}  // namespace qact::losses
