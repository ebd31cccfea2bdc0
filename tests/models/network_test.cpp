#include "qact/models/network.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/nn/activation.h"
#include "qact/nn/quantile_activation.h"

namespace qact::models {
namespace {

int64_t parameter_count(const std::string& name, const NetworkOptions& options) {
  int64_t count = 0;
  for (const auto& parameter : make(name, options)->parameters()) count += parameter.numel();
  return count;
}

int64_t quantile_activations(const std::string& name, const NetworkOptions& options) {
  int64_t count = 0;
  for (const auto& module : make(name, options)->modules()) {
    count += module->as<nn::QuantileActivation>() != nullptr;
  }
  return count;
}

TEST(Networks, HaveTheKnownNumbersOfParameters) {
  EXPECT_EQ(parameter_count("resnet18", {}), 11'173'962);
  EXPECT_EQ(parameter_count("vgg16", {}), 14'728'266);
  EXPECT_EQ(parameter_count("densenet", {}), 1'000'618);
  EXPECT_EQ(parameter_count("resnet26", {}), 366'938);
  EXPECT_EQ(parameter_count("resnet26", {.norm = "group"}), 366'938);
  EXPECT_EQ(parameter_count("wrn-40-4", {}), 8'949'210);
  EXPECT_EQ(parameter_count("lenet", {.channels = 1, .image_size = 28}), 712'522);
  EXPECT_EQ(parameter_count("mlp", {}), 2'106'890);
  // 10 layers, each with two norms of two parameters a channel.
  EXPECT_EQ(parameter_count("resnet18", {.activation = "qact"}), 11'173'962 + 9'984);
}

TEST(Networks, PutTheActivationWhereThePlacementSays) {
  struct Case {
    const char* name;
    int64_t reference, stem, early, all, stages;
  };
  const Case cases[] = {
      {"resnet18", 10, 1, 3, 18, 4}, {"vgg16", 14, 1, 2, 14, 5}, {"densenet", 63, 1, 8, 121, 4},
      {"lenet", 4, 1, 2, 4, 3},      {"mlp", 3, 1, 2, 3, 2},     {"resnet26", 14, 1, 5, 26, 3},
      {"wrn-40-4", 20, 1, 7, 38, 3},
  };
  ASSERT_EQ(std::size(cases), names().size());
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    NetworkOptions options{.activation = "qact"};
    const auto count = [&](const char* placement, int64_t stages) {
      options.placement = placement;
      options.early_stages = stages;
      return quantile_activations(test.name, options);
    };
    EXPECT_EQ(count("reference", 1), test.reference);
    EXPECT_EQ(count("early", 0), test.stem);
    EXPECT_EQ(count("early", 1), test.early);
    EXPECT_EQ(count("all", 1), test.all);
    // All of the trunk, which leaves the pooled features where a network pools.
    const bool pools = std::string(test.name) != "lenet" && std::string(test.name) != "mlp";
    EXPECT_EQ(count("early", test.stages), test.reference - pools);
    EXPECT_THROW(count("early", test.stages + 1), c10::Error);
    EXPECT_THROW(count("early", -1), c10::Error);
  }
}

class EachNetwork : public testing::TestWithParam<std::string> {};

TEST_P(EachNetwork, TrainsWithEveryActivationAndPlacement) {
  torch::manual_seed(1);
  const torch::Tensor images = torch::randn({3, 3, 16, 16});
  for (const std::string& activation : nn::activation_names()) {
    for (const char* placement : {"reference", "early", "split", "all"}) {
      SCOPED_TRACE(activation + " " + placement);
      const bool convolutions_alone = activation == "ibn-relu" || std::string(placement) == "split";
      if (convolutions_alone && GetParam() == "mlp") continue;
      // The others have sites where an image has one value.
      if (activation == "ibn-relu" && std::string(placement) != "split") continue;
      const auto network =
          make(GetParam(),
               {.classes = 7, .image_size = 16, .activation = activation, .placement = placement});
      const NetworkOutput output = network->forward(images);
      EXPECT_EQ(output.embedding.sizes(), (std::vector<int64_t>{3, network->features()}));
      ASSERT_EQ(output.logits.sizes(), (std::vector<int64_t>{3, 7}));
      output.logits.square().sum().backward();
      for (const auto& item : network->named_parameters()) {
        ASSERT_TRUE(item.value().grad().defined()) << item.key();
        ASSERT_TRUE(torch::isfinite(item.value().grad()).all().item<bool>()) << item.key();
      }
      network->eval();
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::isfinite(network->forward(images).logits).all().item<bool>());
    }
  }
}

TEST_P(EachNetwork, TakesTheSizesOfTheDatasets) {
  for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{1, 28}, {3, 32}, {3, 64}}) {
    const auto network =
        make(GetParam(), {.classes = 200, .channels = channels, .image_size = size});
    const torch::NoGradGuard no_grad;
    const NetworkOutput output = network->forward(torch::randn({2, channels, size, size}));
    EXPECT_EQ(output.logits.sizes(), (std::vector<int64_t>{2, 200}));
    EXPECT_THROW(network->forward(torch::randn({2, channels, size, size + 1})), c10::Error);
    EXPECT_THROW(network->forward(torch::randn({channels, size, size})), c10::Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EachNetwork, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Networks, RefuseWhatTheyCannotHave) {
  EXPECT_THROW(make("resnet19", {}), c10::Error);
  EXPECT_THROW(make("mlp", {.classes = 1}), c10::Error);
  EXPECT_THROW(make("mlp", {.channels = 0}), c10::Error);
  EXPECT_THROW(make("mlp", {.image_size = 15}), c10::Error);
  EXPECT_THROW(make("mlp", {.activation = "gelu"}), c10::Error);
  EXPECT_THROW(make("mlp", {.placement = "late"}), c10::Error);
  EXPECT_THROW(make("mlp", {.norm = "layer"}), c10::Error);
  EXPECT_THROW(make("densenet", {.norm = "group"}), c10::Error);
}

}  // namespace
}  // namespace qact::models
