// What a run can be resumed with, and the errors where it cannot.
#include <gtest/gtest.h>

#include "qact/train/model_file.h"
#include "tests/base/message.h"
#include "tests/image/image_folder.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

namespace fs = std::filesystem;

// A run that was stopped in its second epoch.
struct Stopped : TrainingFixture {
  Stopped() {
    int calls = 7;  // four steps, the validation, two steps
    EXPECT_TRUE(train(config(), run("run"), false, stop_after(&calls)).interrupted);
  }
  RunFolder run_folder() const { return run("run"); }
  std::string resumed() const {
    return message_of([&] { train(config(), run_folder(), true); });
  }
};

TEST(Resume, NeedsARun) {
  const TrainingFixture scratch;
  const RunFolder run = scratch.run("mistyped");
  const auto message = [&] { return message_of([&] { train(scratch.config(), run, true); }); };
  EXPECT_EQ(message(), "[train] expected a run to resume in " + run.folder.string() +
                           ", got no such folder: without --resume a run begins there");
  EXPECT_FALSE(fs::exists(run.folder));
  fs::create_directories(run.folder);
  expect_in("got no config.json there: without --resume a run begins", message());
  EXPECT_TRUE(fs::is_empty(run.folder));
  // Where there are weights, no run would begin.
  std::ofstream(run.model()) << "weights";
  expect_in("got no config.json there, which says what it is", message());
}

TEST(Resume, KeepsFilesOfOthers) {
  const TrainingFixture scratch;
  const RunFolder run = scratch.run("run");
  fs::create_directories(run.folder);
  const fs::path own = run.folder / "config.json.backup";
  std::ofstream(own) << "mine";
  train(scratch.config(), run, false);
  EXPECT_EQ(contents(own), "mine");
}

TEST(Resume, NeedsTheState) {
  const Stopped scratch;
  const RunFolder run = scratch.run_folder();
  const std::string model = contents(run.model());
  fs::remove(run.state());
  expect_in("got no state.safetensors there", scratch.resumed());
  EXPECT_TRUE(contents(run.model()) == model);
  // Nor does a new run begin over the weights of an old one.
  fs::remove(run.config());
  expect_in("which has model.safetensors, but no config.json",
            message_of([&] { train(scratch.config(), run, false); }));
  EXPECT_TRUE(contents(run.model()) == model);
}

// From its first moment on: a run that was killed before its first step can be resumed.
TEST(Resume, BeginsWithAState) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 1;
  TrainEvents events;
  events.step = [&](const TrainStatus&) -> bool { throw std::runtime_error("killed"); };
  EXPECT_EQ(message_of([&] { train(config, scratch.run("run"), false, events); }), "killed");
  EXPECT_FALSE(fs::exists(scratch.run("run").model()));
  train(config, scratch.run("run"), true);
  train(config, scratch.run("whole"), false);
  EXPECT_TRUE(contents(scratch.run("run").state()) == contents(scratch.run("whole").state()));
}

TEST(Resume, TellsOtherData) {
  const Stopped scratch;
  const std::string before = contents(scratch.run_folder().state());
  const fs::path images = scratch.path / "data" / "train-images-idx3-ubyte";
  const std::string bytes = contents(images);
  std::string changed = bytes;
  changed.back() ^= 1;
  std::ofstream(images, std::ios::binary) << changed;
  const std::string hash = load_model(scratch.run_folder().model()).card.data_hash;
  const std::string expected =
      "[train] expected the training data that the run began with, 90 images of 3 classes with the "
      "digest " +
      hash + ", got ";
  const std::string message = scratch.resumed();
  expect_in(expected + "90 images of 3 classes with the digest ", message);
  EXPECT_EQ(message.find(hash), message.rfind(hash)) << message;

  write_bands(scratch.path / "data", "train", 87);
  expect_in(expected + "87 images of 3 classes with the digest ", scratch.resumed());
  EXPECT_TRUE(contents(scratch.run_folder().state()) == before);
  write_bands(scratch.path / "data", "train", 90);
  EXPECT_EQ(scratch.resumed(), "nothing was thrown");
}

// Images in folders, of which one is renamed: its images would have another's label.
TEST(Resume, TellsAClassThatWasRenamed) {
  const TrainingFixture scratch;
  const fs::path data = scratch.path / "images";
  write_images(data / "train", {"cat", "dog"}, 4);
  write_images(data / "test", {"cat", "dog"}, 1);
  TrainConfig config = scratch.config();
  config.data = data.string();
  config.batch_size = 4;
  config.validation = 0;
  config.epochs = 1;
  const RunFolder run = scratch.run("run");
  train(config, run, false);
  EXPECT_EQ(load_model(run.model()).card.class_names, (std::vector<std::string>{"cat", "dog"}));
  for (const char* part : {"train", "test"}) fs::rename(data / part / "cat", data / part / "lynx");
  expect_in("expected the training data that the run began with, 8 images of 2 classes",
            message_of([&] { train(config, run, true); }));
}

TEST(Resume, TellsAConfigurationThatWasEdited) {
  const Stopped scratch;
  const RunFolder run = scratch.run_folder();
  TrainConfig config = resolved(scratch.config());
  config.epochs = 1;
  write_config(run.config(), config);
  EXPECT_EQ(message_of([&] { train(config, run, true); }),
            "[train] expected --epochs as the run began, 3, got 1");
  config = resolved(scratch.config());
  config.model = "lenet";  // whose weights would not even fit
  write_config(run.config(), config);
  EXPECT_EQ(message_of([&] { train(config, run, true); }),
            "[train] expected --model as the run began, \"mlp\", got \"lenet\"");
}

TEST(Resume, CutsOffAnIncompleteLine) {
  const Stopped scratch;
  const RunFolder run = scratch.run_folder();
  const std::string rows = contents(run.rows());
  ASSERT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1);
  std::ofstream(run.rows(), std::ios::app) << "{\"kind\":\"epoch\",\"epo";
  std::string remark;
  int calls = 1;
  TrainEvents events = stop_after(&calls);
  events.remark = [&](const std::string& text) { remark = text; };
  train(scratch.config(), run, true, events);
  EXPECT_EQ(remark, "cut off line 2 of " + run.rows().string() + ", which was not whole");
  EXPECT_EQ(contents(run.rows()), rows);
}

TEST(Resume, NamesARowThatIsNone) {
  const Stopped scratch;
  const RunFolder run = scratch.run_folder();
  std::ofstream(run.rows()) << "{\"kind\":\"epoch\",\"epoch\":\"1\"}\n";
  EXPECT_EQ(message_of([&] { train(scratch.config(), run, true); }),
            "[results] expected a row with a fitting \"epoch\", got {\"kind\":\"epoch\","
            "\"epoch\":\"1\"} in " +
                run.rows().string());
}

TEST(Resume, TellsRowsThatWereLost) {
  const Stopped scratch;
  const RunFolder run = scratch.run_folder();
  fs::remove(run.rows());
  std::string remark;
  int calls = 1;
  TrainEvents events = stop_after(&calls);
  events.remark = [&](const std::string& text) { remark += text; };
  train(scratch.config(), run, true, events);
  EXPECT_EQ(remark, "expected the rows of 1 epochs in " + run.rows().string() +
                        ", got 0: the run goes on without the others");
}

}  // namespace
}  // namespace qact::train
