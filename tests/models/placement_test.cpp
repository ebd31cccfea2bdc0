#include "qact/models/placement.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "qact/nn/instance_batch_norm.h"
#include "qact/nn/quantile_activation.h"
#include "tests/base/message.h"

namespace qact::models {
namespace {

using Names = std::set<std::string>;

// The names of a network's activations that are no ReLU: of QAct with its number of image channels.
Names sites_of(const std::string& name, const NetworkOptions& options) {
  Names found;
  for (const auto& item : make(name, options)->named_modules()) {
    if (const auto* layer = item.value()->as<nn::QuantileActivation>()) {
      found.insert(item.key() + " " + std::to_string(layer->image_channels()) + "/" +
                   std::to_string(layer->options.num_features()));
    } else if (item.value()->as<nn::InstanceBatchNorm>()) {
      found.insert(item.key() + " ibn");
    }
  }
  return found;
}

NetworkOptions split(int64_t stages, double share = 0.5) {
  return {.activation = "qact", .placement = "split", .early_stages = stages, .image_share = share};
}

TEST(Placement, SplitHasTheStemAndAllSitesOfTheFirstStages) {
  EXPECT_EQ(sites_of("resnet18", split(0)), (Names{"stem_activation 32/64"}));
  EXPECT_EQ(sites_of("resnet18", split(1)),
            (Names{"stem_activation 32/64", "layer1.0.inner_activation 32/64",
                   "layer1.0.outer_activation 32/64", "layer1.1.inner_activation 32/64",
                   "layer1.1.outer_activation 32/64"}));
  EXPECT_EQ(sites_of("lenet", split(1)), (Names{"activation1 16/32", "activation2 32/64"}));
  EXPECT_EQ(sites_of("lenet", split(1, 0.25)), (Names{"activation1 8/32", "activation2 16/64"}));
  EXPECT_EQ(sites_of("vgg16", split(1)), (Names{"features.2 32/64", "features.5 32/64"}));
  // The first site of stage 2 reads the residual sum of stage 1; no branch of stage 2 is there.
  const Names wide = sites_of("wrn-40-4", split(1));
  EXPECT_EQ(wide.size(), 13u);
  EXPECT_TRUE(wide.contains("block2.layer.0.outer_activation 32/64"));
  EXPECT_FALSE(wide.contains("block2.layer.0.inner_activation 64/128"));
  EXPECT_EQ(sites_of("resnet26", split(1)).size(), 9u);
  EXPECT_EQ(sites_of("densenet", split(1)).size(), 14u);
  EXPECT_EQ(sites_of("resnet18", split(4)).size(), 17u);  // all but the pooled one
}

TEST(Placement, OthersHaveNoImageShare) {
  for (const char* placement : {"reference", "early", "all"}) {
    NetworkOptions options = split(1);
    options.placement = placement;
    for (const std::string& site : sites_of("resnet18", options)) expect_in(" 0/", site);
  }
  NetworkOptions control = split(1);
  control.activation = "ibn-relu";
  EXPECT_EQ(sites_of("lenet", control), (Names{"activation1 ibn", "activation2 ibn"}));
}

TEST(Placement, ASiteListOverridesIt) {
  NetworkOptions options = split(0);
  options.sites = "1=split,1.branch=qact,2=ibn-relu,pooled=qact";
  EXPECT_EQ(sites_of("resnet18", options),
            (Names{"stem_activation 32/64", "layer1.0.inner_activation 0/64",
                   "layer1.0.outer_activation 32/64", "layer1.1.inner_activation 0/64",
                   "layer1.1.outer_activation 32/64", "layer2.0.outer_activation ibn",
                   "layer2.1.outer_activation ibn", "pooled_activation 0/512"}));
  options.sites = "stem=relu";
  EXPECT_TRUE(sites_of("resnet18", options).empty());
}

TEST(Placement, NamesWhatThereIs) {
  const auto message = [](const std::string& network, const std::string& sites) {
    return message_of([&] { make(network, {.sites = sites}); });
  };
  expect_in(
      "expected a site among stem, 1, 1.branch, 2, 2.branch, 3, 3.branch, 4, 4.branch, "
      "pooled, got '5'",
      message("resnet18", "5=qact"));
  expect_in("expected a site among stem, 1, 2, 3, got '1.branch'",
            message("lenet", "1.branch=qact"));
  expect_in(
      "expected an activation among qact, relu, prelu, selu, bn-relu, ibn-relu, split, got "
      "'gelu'",
      message("resnet18", "stem=gelu"));
  expect_in("expected SITE=ACTIVATION, got 'stem'", message("resnet18", "1=qact,stem"));
  expect_in("expected SITE=ACTIVATION, got ''", message("resnet18", "1=qact,,2=qact"));
  expect_in("expected each site once, got '1' twice", message("resnet18", "1=qact,1=split"));
}

// Where an image has one value, it cannot be a context.
TEST(Placement, RefusesAnImageShareOfOneValue) {
  const auto message = [](const std::string& network, const NetworkOptions& options) {
    return message_of([&] { make(network, options); });
  };
  expect_in(
      "expected a site of a convolution for 'split', got 'pooled', where an image has one "
      "value per channel",
      message("resnet18", {.sites = "pooled=split"}));
  expect_in("for 'split', got '2', where", message("lenet", {.sites = "2=split"}));
  expect_in("for 'ibn-relu', got 'stem', where", message("mlp", {.activation = "ibn-relu"}));
  expect_in("expected 0 to 1 early stages, got 2", message("lenet", split(2)));
  expect_in("a network with convolutions for the placement split", message("mlp", split(0)));
  expect_in("an image share in [0, 1], got 1.5", message("lenet", split(1, 1.5)));
  // Feature maps of one pixel are known when images come.
  const auto network = make("vgg16", {.image_size = 16, .sites = "5=ibn-relu"});
  expect_in("more than one value per image and channel",
            message_of([&] { network->forward(torch::randn({2, 3, 16, 16})); }));
}

TEST(Placement, TheDefaultIsSplitWhereThereAreConvolutions) {
  EXPECT_EQ(default_placement("lenet", "qact"), "split");
  EXPECT_EQ(default_placement("resnet18", "ibn-relu"), "split");
  EXPECT_EQ(default_placement("resnet18", "prelu"), "reference");
  EXPECT_EQ(default_placement("mlp", "qact"), "reference");
}

}  // namespace
}  // namespace qact::models
