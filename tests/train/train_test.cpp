#include "qact/train/train.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/data/dataset.h"
#include "qact/data/digest.h"
#include "qact/train/model_file.h"
#include "tests/base/message.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  void (*change)(TrainConfig& config);
};
const Case kCases[] = {
    {"onecycle", [](TrainConfig&) {}},
    {"adam and watershed",
     [](TrainConfig& c) {
       c.opt = "adam", c.lr = 1e-3, c.lr_scheduler = "plateau", c.patience = 0;
       c.cooldown = 0, c.loss = "watershed", c.validation_mode = "batch";
     }},
    {"triplets, accumulated",
     [](TrainConfig& c) {
       c.loss = "triplet", c.accumulate = 2, c.nesterov = true, c.lr_scheduler = "cosine";
       c.activation = "relu", c.augment = "crop-flip", c.save_every = 1;
     }},
    {"consistency",
     [](TrainConfig& c) { c.augment = "augmix", c.jsd = 12, c.accumulate = 2, c.save_every = 1; }},
    {"mixed precision",
     [](TrainConfig& c) { c.model = "lenet", c.amp = "bf16", c.channels_last = true; }},
};

// Against a run that was never stopped.
TEST(Train, ResumesFromEveryStepBitForBit) {
  const TrainingFixture scratch;
  for (const Case& each : kCases) {
    TrainConfig config = scratch.config();
    each.change(config);
    const RunFolder whole = scratch.run(std::string(each.name) + " whole");
    int calls = 1 << 20;
    ASSERT_FALSE(train(config, whole, false, stop_after(&calls)).interrupted);
    const int all = (1 << 20) - calls;
    EXPECT_GE(all, 3 * (config.accumulate == 2 ? 2 : 4) + 3);
    const RunFolder run = scratch.run(std::string(each.name) + " stopped");
    // Starts of 2 to 5 calls: every kind of place comes up, and a recalibration of 4 batches, which
    // is made anew after an interruption, comes to its end.
    TrainResult result;
    int starts = 0;
    do {
      calls = 2 + starts % 4;
      result = train(config, run, /*resume=*/starts > 0, stop_after(&calls));
      ASSERT_LT(++starts, 2 * all) << each.name;
    } while (result.interrupted);
    EXPECT_GT(starts, all / 4);
    for (const auto& [a, b] : {std::pair(whole.model(), run.model()),
                               {whole.best(), run.best()},
                               {whole.state(), run.state()}}) {
      EXPECT_TRUE(contents(a) == contents(b)) << each.name << ": " << a.filename();
    }
    EXPECT_EQ(results::read_rows(run.rows()).size(), 3u);
  }
}

TEST(Train, DoesNotDependOnTheWorkers) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.augment = "crop-flip";
  train(config, scratch.run("none"), false);
  config.workers = 3;
  train(config, scratch.run("three"), false);
  EXPECT_TRUE(contents(scratch.run("none").state()) == contents(scratch.run("three").state()));
}

TEST(Train, LearnsAndLeavesAModelThatCanBeUsed) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 6;
  const RunFolder run = scratch.run("run");
  results::Rows told;
  TrainEvents events;
  events.epoch = [&](const results::Row& row) { told.push_back(row); };
  const TrainResult result = train(config, run, false, events);
  EXPECT_GE(result.best.value(), 0.9);
  EXPECT_EQ(result.steps, 24);
  EXPECT_EQ(told, results::read_rows(run.rows()));
  EXPECT_LT(told.back()["loss"].get<double>(), told.front()["loss"].get<double>());

  const Model model = load_model(run.best());
  EXPECT_EQ(model.card.model, "mlp");
  EXPECT_EQ(model.card.options.activation, "qact");
  EXPECT_EQ(model.card.options.classes, 3);
  EXPECT_EQ(model.card.options.channels, 1);
  EXPECT_EQ(model.card.options.image_size, 16);
  EXPECT_EQ(model.card.data, "data");
  EXPECT_EQ(model.card.data_hash, data::digest_of(data::open_dataset(config.data, "").read({})));
  EXPECT_EQ(model.card.epoch, result.best_epoch);
  ASSERT_EQ(model.card.normalisation.mean.size(), 1u);
  EXPECT_GT(model.card.normalisation.std[0], 0);
  const models::NetworkOutput output = model.network->forward(torch::zeros({2, 1, 16, 16}));
  EXPECT_EQ(output.logits.sizes(), (std::vector<int64_t>{2, 3}));
}

TEST(Train, WithoutValidationImagesThereIsNoBest) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.validation = 0;
  config.epochs = 1;
  const TrainResult result = train(config, scratch.run("run"), false);
  EXPECT_EQ(result.steps, 5);
  EXPECT_FALSE(result.best.has_value());
  EXPECT_FALSE(fs::exists(scratch.run("run").best()));
}

// A single image has no statistics, since LeNet's linear layers have one value per image. So no
// batch, of the classifiers or of the validation, is a single image.
TEST(Train, NoBatchIsASingleImage) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.model = "lenet";
  config.epochs = 1;
  config.fit_classifiers = "on";
  config.validation_mode = "batch";
  struct Few {
    uint32_t images;
    int64_t batch_size;
    double validation;
  };
  for (const auto& [images, batch_size, validation] :
       {Few{57, 8, 0}, {2, 2, 0}, {3, 2, 0}, {6, 2, 0.5}, {10, 3, 0.2}}) {
    write_bands(scratch.path / "data", "train", images);
    write_bands(scratch.path / "data", "t10k", 2);
    config.batch_size = batch_size;
    config.validation = validation;
    const RunFolder run = scratch.run(std::to_string(images));
    EXPECT_EQ(message_of([&] { train(config, run, false); }), "nothing was thrown") << images;
    EXPECT_FALSE(load_model(run.model()).classifiers.empty()) << images;
  }
}

TEST(Train, ValidatesOnTwoImagesOrNone) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  for (const auto& [share, text] :
       {std::pair{0.01, "0.01, which is 1 of 90"}, {0.001, "0.001, which is 0 of 90"}}) {
    config.validation = share;
    expect_in("--validation to hold out 2 images or more, or 0 for none, got " + std::string(text),
              message_of([&] { train(config, scratch.run("run"), false); }));
  }
}

TEST(Train, StopsEarly) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 50;
  config.early_stopping = 1;
  config.early_stopping_patience = 1;
  const TrainResult result = train(config, scratch.run("run"), false);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.epochs, 3);
  // A finished run has nothing left to do.
  EXPECT_EQ(train(config, scratch.run("run"), true).epochs, 3);
}

TEST(Train, ALossThatIsNotFiniteNamesStepAndLayer) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  // The weights grow by 1e12 each step.
  config.lr = config.weight_decay = 1e6;
  config.lr_scheduler = "constant";
  config.batch_size = 6;
  const std::string message = message_of([&] { train(config, scratch.run("run"), false); });
  expect_in("[train] expected a finite loss, got ", message);
  expect_in(" (epoch 1): the first output that is not finite is that of layer fc", message);
  EXPECT_FALSE(fs::exists(scratch.run("run").model()));
}

// They differ from float32 in the default layout by rounding alone.
TEST(Train, MixedPrecisionAndLayoutHardlyChangeTheLoss) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.model = "lenet";
  config.epochs = 1;
  const auto loss_of = [&](const std::string& name) {
    train(config, scratch.run(name), false);
    return results::read_rows(scratch.run(name).rows()).at(0)["loss"].get<double>();
  };
  const double plain = loss_of("plain");
  config.channels_last = true;
  EXPECT_NEAR(loss_of("channels last"), plain, 1e-3 * plain);
  config.amp = "bf16";
  const double mixed = loss_of("mixed");
  EXPECT_NEAR(mixed, plain, 0.05 * plain);
  EXPECT_NE(mixed, plain);
}

TEST(Train, CheckpointedActivationsGiveTheSameWeights) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.model = "resnet26";
  config.epochs = 1;
  train(config, scratch.run("default"), false);
  config.checkpoint_activations = true;
  train(config, scratch.run("checkpointed"), false);
  EXPECT_TRUE(contents(scratch.run("default").model()) ==
              contents(scratch.run("checkpointed").model()));
}

TEST(Train, OneProcessAtATime) {
  const TrainingFixture scratch;
  const TrainConfig config = scratch.config();
  const RunFolder run = scratch.run("run");
  std::string message;
  TrainEvents events;
  events.step = [&](const TrainStatus&) {
    message = message_of([&] { train(config, run, true); });
    return false;
  };
  train(config, run, false, events);
  EXPECT_EQ(message, "[train] expected to have " + run.folder.string() +
                         " alone, got another process that is training in it");
  EXPECT_NO_THROW(train(config, run, true));
}

TEST(Train, TellsADeviceThatIsNotThere) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.device = "cuda:99";
  expect_in("GPUs that torch sees, got cuda:99",
            message_of([&] { train(config, scratch.run("run"), false); }));
}

TEST(Train, RefusesAFolderWithAnotherRun) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 1;
  const RunFolder run = scratch.run("run");
  train(config, run, false);
  const std::string before = contents(run.state());
  expect_in("which has one: --resume goes on", message_of([&] { train(config, run, false); }));
  config.lr = 0.5;
  expect_in("--lr as the run began, 0.01, got 0.5", message_of([&] { train(config, run, true); }));
  EXPECT_TRUE(contents(run.state()) == before);
}

TEST(Train, LeavesNoFolderWhereItCannotBegin) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.batch_size = 80;
  expect_in("at least 80 training images for one step, got 72",
            message_of([&] { train(config, scratch.run("run"), false); }));
  EXPECT_FALSE(fs::exists(scratch.path / "run"));
}

TEST(Train, TellsADamagedState) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 2;
  const RunFolder run = scratch.run("run");
  int calls = 3;
  ASSERT_TRUE(train(config, run, false, stop_after(&calls)).interrupted);
  const std::string whole = contents(run.state());
  const auto attempt = [&](const std::string& bytes) {
    std::ofstream(run.state(), std::ios::binary) << bytes;
    return message_of([&] { train(config, run, true); });
  };
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 4;
  expect_in("state.safetensors: expected the checksum", attempt(flipped));
  expect_in("state.safetensors", attempt(whole.substr(0, whole.size() - 5)));
  expect_in("state.safetensors", attempt(""));
  EXPECT_EQ(attempt(whole), "nothing was thrown");
}

TEST(Train, TellsADamagedModel) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 1;
  const RunFolder run = scratch.run("run");
  train(config, run, false);
  const std::string whole = contents(run.model());
  const auto attempt = [&](std::string bytes) {
    std::ofstream(run.model(), std::ios::binary) << bytes;
    return message_of([&] { load_model(run.model()); });
  };
  // The lowest bit of a weight, and a letter of the card.
  for (const size_t at : {whole.size() - 400, whole.find("epoch")}) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    expect_in("model.safetensors: expected the checksum", attempt(flipped));
  }
  // Models without a checksum are read as before.
  std::string without = whole;
  without[without.find("qact.checksum")] = 'Q';
  EXPECT_EQ(attempt(without), "nothing was thrown");
}

}  // namespace
}  // namespace qact::train
