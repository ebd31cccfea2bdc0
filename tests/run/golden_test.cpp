// The first ten losses of each network with each activation, as they were when they were
// pinned: what changes them is not a refactoring. QACT_REMAKE=1 writes them anew.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qact/core/random.h"
#include "qact/losses/loss.h"
#include "qact/models/network.h"

namespace qact::run {
namespace {

constexpr int kSteps = 10, kBatch = 8, kSide = 16;
// A rate at which the last bit of another processor's convolution does not grow: with a larger
// one, at 8 images, two instruction sets part within ten steps.
constexpr double kRate = 1e-5;

// Between instruction sets losses were found to differ by 1e-5; with QAct, where a last bit may
// change a level, by 1e-3 in shallow networks and by up to 0.35 behind many norms of 8 values.
double tolerance(const std::string& network, const std::string& activation) {
  if (activation != "qact") return 2e-3;
  return network == "lenet" || network == "mlp" ? 0.05 : 0.5;
}

std::string fixture(const std::string& network) {
  return std::string(QACT_TEST_FIXTURES) + "/golden/" + network + ".json";
}

torch::Tensor uniform(std::vector<int64_t> shape, uint64_t stream) {
  core::Random random(1, stream);
  torch::Tensor x = torch::empty(shape);
  for (float *p = x.data_ptr<float>(), *end = p + x.numel(); p != end; ++p) {
    *p = static_cast<float>(2 * random.uniform() - 1);
  }
  return x;
}

std::vector<double> first_losses(const std::string& name, const std::string& activation) {
  torch::manual_seed(1);
  const auto network = models::make(name, {.image_size = kSide, .activation = activation});
  torch::optim::SGD optimiser(network->parameters(),
                              torch::optim::SGDOptions(kRate).momentum(0.9).weight_decay(5e-4));
  const losses::Loss loss = losses::make("cross-entropy");
  std::vector<double> values;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor images = uniform({kBatch, 3, kSide, kSide}, step);
    const torch::Tensor labels = (torch::arange(kBatch) + step) % 10;
    const models::Output output = network->forward(images);
    core::Random random(1, 0);
    const torch::Tensor value = loss.value({output.embedding, output.logits, labels}, random);
    optimiser.zero_grad();
    value.backward();
    optimiser.step();
    values.push_back(value.item<double>());
  }
  return values;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TheFirstTenLossesStay) {
  at::set_num_threads(1);  // as quick as two on small images, and the sums keep their order
  nlohmann::ordered_json found;
  for (const char* activation : {"qact", "relu", "prelu", "selu"}) {
    found[activation] = first_losses(GetParam(), activation);
  }
  if (std::getenv("QACT_REMAKE")) {
    std::ofstream(fixture(GetParam())) << found.dump(1) << "\n";
    GTEST_SKIP() << "wrote " << fixture(GetParam());
  }
  const auto pinned = nlohmann::ordered_json::parse(std::ifstream(fixture(GetParam())));
  for (const auto& [activation, losses] : found.items()) {
    for (int step = 0; step < kSteps; ++step) {
      const double expected = pinned.at(activation).at(step).get<double>();
      EXPECT_NEAR(losses[step].get<double>(), expected, tolerance(GetParam(), activation))
          << activation << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden, testing::ValuesIn(models::names()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace qact::run
