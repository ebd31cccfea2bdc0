#include "qact/train/config.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "qact/train/network_options.h"
#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"

namespace qact::train {
namespace {

TEST(TrainConfig, ComesBackFromItsFile) {
  const ScratchFolder scratch;
  TrainConfig config;
  config.data = "a \"name\"";
  config.lr = 0.1 + 0.2;
  config.seed = ~uint64_t{0};
  config.nesterov = true;
  config.lr_steps = {3, 5};
  write_config(scratch.path / "config.json", config);
  const TrainConfig found = read_config(scratch.path / "config.json");
  EXPECT_EQ(to_json(found), to_json(config));
  EXPECT_EQ(found.lr, config.lr);
  EXPECT_EQ(found.seed, config.seed);
}

TEST(TrainConfig, NamesWhatIsWrongInAFile) {
  auto json = to_json({});
  json.erase("lr");
  expect_in("run.json: expected 'lr', got none",
            message_of([&] { train_config(json, "run.json"); }));
  json = to_json({});
  json.erase("cuda-graph");
  expect_in("x: expected 'cuda-graph', got none", message_of([&] { train_config(json, "x"); }));
  json = to_json({});
  json["extra"] = 1;
  expect_in("x: expected the options of a run alone, got 'extra'",
            message_of([&] { train_config(json, "x"); }));
}

// Nothing is converted: a share of an epoch is not none, and no seed is below 0.
TEST(TrainConfig, NamesValuesOfAnotherType) {
  using Json = nlohmann::ordered_json;
  const struct {
    const char *name, *value, *expected;
  } cases[] = {
      {"lr", "\"fast\"", "a number for 'lr'"},
      {"lr", "null", "a number for 'lr'"},
      {"epochs", "1.5", "a whole number for 'epochs'"},
      {"epochs", "true", "a whole number for 'epochs'"},
      {"epochs", "18446744073709551615", "a whole number for 'epochs'"},
      {"seed", "-1", "a whole number of 0 or more for 'seed'"},
      {"nesterov", "1", "true or false for 'nesterov'"},
      {"model", "3", "a text for 'model'"},
      {"lr-steps", "[1,2.5]", "a list of whole numbers for 'lr-steps'"},
      {"lr-steps", "7", "a list of whole numbers for 'lr-steps'"},
  };
  for (const auto& each : cases) {
    Json json = to_json({});
    json[each.name] = Json::parse(each.value);
    EXPECT_EQ(message_of([&] { train_config(json, "x"); }),
              std::string("[train] x: expected ") + each.expected + ", got " + each.value);
  }
}

TEST(TrainConfig, SaysWhatAFolderIsThatIsNoRuns) {
  const ScratchFolder scratch;
  const auto message = [&](const std::filesystem::path& folder) {
    return message_of([&] { read_config(folder / "config.json"); });
  };
  const std::string expected = "[run] expected a run's folder, as `qact train --output` writes it";
  const std::string folder = scratch.path.string();
  EXPECT_EQ(message(scratch.path / "none"),
            expected + ", got " + folder + "/none, which is not there");
  EXPECT_EQ(message(scratch.path), expected + ", got " + folder + ", which has no config.json");
  const auto write = [&](const char* text) { std::ofstream(scratch.path / "config.json") << text; };
  write("{\"data\":\n \"mni");
  expect_in(expected + ", got " + folder + ", whose config.json is not JSON: parse error at line 2",
            message(scratch.path));
  write("[1]");
  expect_in("whose config.json is not an object but array", message(scratch.path));
  expect_in("config.json, which is no folder", message(scratch.path / "config.json"));
}

TEST(TrainConfig, RefusesValues) {
  const struct {
    std::function<void(TrainConfig&)> change;
    const char* message;
  } cases[] = {
      {[](TrainConfig& c) { c.epochs = 0; }, "--epochs"},
      {[](TrainConfig& c) { c.batch_size = 1; }, "--batch-size"},
      {[](TrainConfig& c) { c.accumulate = 0; }, "--accumulate"},
      {[](TrainConfig& c) { c.validation = 1; }, "--validation"},
      {[](TrainConfig& c) { c.lr = std::nan(""); }, "--lr"},
      {[](TrainConfig& c) { c.model = "net"; }, "--model one of densenet, lenet"},
      {[](TrainConfig& c) { c.activation = "gelu"; }, "--activation one of qact, relu"},
      {[](TrainConfig& c) { c.placement = "late"; },
       "--placement one of auto, reference, early, split"},
      {[](TrainConfig& c) { c.norm = "layer"; }, "--norm one of batch, group, got 'layer'"},
      {[](TrainConfig& c) { c.loss = "hinge"; }, "--loss one of cross-entropy"},
      {[](TrainConfig& c) { c.amp = "fp16"; }, "--amp one of none, bf16, got 'fp16'"},
      {[](TrainConfig& c) { c.lr = NAN; }, "--lr within [0.0,1000000.0], got nan"},
      {[](TrainConfig& c) { c.lr = -INFINITY; }, "--lr within [0.0,1000000.0], got -inf"},
      {[](TrainConfig& c) { c.epochs = 0; }, "--epochs within [1,1099511627776], got 0"},
      {[](TrainConfig& c) { c.epochs = -3; }, "--epochs within [1,1099511627776], got -3"},
      {[](TrainConfig& c) { c.batch_size = 1; }, "--batch-size within [2,1099511627776], got 1"},
      {[](TrainConfig& c) { c.margin = NAN; }, "--margin within [0.0,1000000.0], got nan"},
      {[](TrainConfig& c) { c.watershed_seeds = 0; }, "--watershed-seeds within [1,"},
      {[](TrainConfig& c) { c.early_stages = -1; }, "--early-stages within [0,"},
      {[](TrainConfig& c) { c.image_share = 1.5; }, "--image-share within [0.0,1.0], got 1.5"},
      {[](TrainConfig& c) { c.jsd = -1; }, "--jsd within [0.0,1000000.0], got -1.0"},
      {[](TrainConfig& c) { c.jsd = 12; }, "--augment augmix with --jsd, got 'none'"},
      {[](TrainConfig& c) { c.jsd = 12, c.augment = "augmix", c.loss = "triplet"; },
       "--loss cross-entropy with --jsd"},
      {[](TrainConfig& c) { c.recalibrate = "yes"; }, "--recalibrate one of on, off, got 'yes'"},
      {[](TrainConfig& c) { c.device = "cuda:x"; }, "--device cpu, cuda or cuda:N, got 'cuda:x'"},
      {[](TrainConfig& c) { c.fit_classifiers = "yes"; }, "--fit-classifiers one of auto, on, off"},
      {[](TrainConfig& c) { c.opt = "lion"; }, "--opt one of sgd, adam, got 'lion'"},
      {[](TrainConfig& c) { c.augment = "cutout"; }, "--augment one of"},
      {[](TrainConfig& c) { c.lr_scheduler = "warm"; }, "--lr-scheduler one of"},
      {[](TrainConfig& c) { c.validation_mode = "prior"; }, "--validation-mode one of"},
      {[](TrainConfig& c) { c.lr_steps = {3, 2}; }, "--lr-steps in ascending order, got [3,2]"},
      {[](TrainConfig& c) { c.lr_steps = {-5, 2}; }, "--lr-steps of 1 or more, got [-5,2]"},
      {[](TrainConfig& c) { c.lr_scheduler = "step"; }, "--lr-steps of one epoch or more with"},
      {[](TrainConfig& c) { c.nesterov = true, c.momentum = 0; }, "--momentum above 0"},
      {[](TrainConfig& c) { c.lr_scheduler = "plateau", c.validation = 0; }, "--validation above"},
      {[](TrainConfig& c) { c.early_stopping = 0.1, c.validation = 0; }, "--validation above"},
  };
  EXPECT_NO_THROW(check(TrainConfig()));
  for (const auto& each : cases) {
    TrainConfig config;
    each.change(config);
    expect_in(each.message, message_of([&] { check(config); }));
  }
}

TEST(TrainConfig, RefusesNetworksThatCannotBe) {
  const struct {
    std::function<void(TrainConfig&)> change;
    const char* message;
  } cases[] = {
      {[](TrainConfig& c) { c.sites = "7=qact"; }, "expected a site among stem, 1, 2, 3, got '7'"},
      {[](TrainConfig& c) { c.sites = "3=split"; }, "a site of a convolution for 'split', got '3'"},
      {[](TrainConfig& c) { c.early_stages = 2; }, "expected 0 to 1 early stages, got 2"},
      {[](TrainConfig& c) { c.model = "mlp", c.placement = "split"; },
       "a network with convolutions"},
      {[](TrainConfig& c) { c.checkpoint_activations = true; }, "expected a network of blocks"},
      {[](TrainConfig& c) { c.model = "densenet", c.norm = "group"; }, "group"},
  };
  torch::manual_seed(5);
  const torch::Tensor drawn = torch::rand(3);
  torch::manual_seed(5);
  EXPECT_NO_THROW(check_network(resolved(TrainConfig())));
  for (const auto& each : cases) {
    TrainConfig config;
    each.change(config);
    EXPECT_NO_THROW(check(config));
    const std::string message = message_of([&] { check_network(resolved(config)); });
    expect_in(each.message, message);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_TRUE(torch::equal(torch::rand(3), drawn));
}

TEST(TrainConfig, AutoIsResolvedOnce) {
  TrainConfig config;
  EXPECT_EQ(resolved(config).placement, "split");
  config.activation = "relu";
  EXPECT_EQ(resolved(config).placement, "reference");
  config.placement = "early";
  EXPECT_EQ(resolved(config).placement, "early");
}

TEST(TrainConfig, GivenOptionsOverlayTheSavedOnes) {
  TrainConfig saved, given;
  saved.lr = 0.3;
  saved.epochs = 7;
  given.lr = 0.4;
  given.epochs = 9;
  const TrainConfig merged = overlay(saved, given, {"lr"});
  EXPECT_EQ(merged.lr, 0.4);
  EXPECT_EQ(merged.epochs, 7);
}

TEST(TrainConfig, AnotherRunIsTold) {
  TrainConfig saved, now;
  now.workers = 7;
  now.data_dir = "elsewhere";
  now.save_every = 3;
  EXPECT_NO_THROW(check_same_run(run_identity(saved), now));
  now.lr = 0.7;
  expect_in("--lr as the run began, 0.1, got 0.7",
            message_of([&] { check_same_run(run_identity(saved), now); }));
}

}  // namespace
}  // namespace qact::train
