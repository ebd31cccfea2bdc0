#include "qact/eval/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "qact/corrupt/write.h"
#include "qact/eval/plan.h"
#include "qact/eval/row_file.h"
#include "qact/results/curve.h"
#include "tests/base/message.h"
#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

EvaluateOptions quick() {
  EvaluateOptions options;
  options.corruptions = {"brightness", "tone"};
  options.severities = {0, 1, 5};
  options.inference.batch_size = 20;
  options.threads = 1;
  options.command = [](const EvaluateOptions&) { return "qact eval"; };
  return options;
}

const EvaluationFixture& shared() {
  static const EvaluationFixture folder;
  return folder;
}

// A copy of the trained run without results.
train::RunFolder copy_of_run(const ScratchFolder& scratch) {
  std::filesystem::copy(shared().run("run").folder, scratch.path / "run");
  std::filesystem::remove(scratch.path / "run" / "results.jsonl");
  return {scratch.path / "run"};
}

const std::string& whole_file() {
  static const std::string text = [] {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    evaluate(folder, quick());
    return train::contents(folder.results());
  }();
  return text;
}

TEST(Evaluate, WritesARowOfEachKindForEachCell) {
  const Rows rows = results::parse_rows(whole_file(), "whole");
  ASSERT_EQ(rows.size(), 1u + 5 * 2 * 3);
  EXPECT_EQ(rows.front()["kind"], "config");
  EXPECT_EQ(rows.front()["config"]["model"], "mlp");
  for (const Row& row : results::of_kind(rows, "scores")) {
    for (const char* name :
         {"dataset", "model",      "activation",   "placement", "loss",   "mode",
          "adapt",   "classifier", "corruption",   "severity",  "seed",   "batch_size",
          "n",       "accuracy",   "ece_marginal", "ece_top",   "map100", "nll",
          "brier",   "ece_plain",  "model_hash",   "versions",  "command"}) {
      EXPECT_TRUE(row.contains(name)) << name;
    }
    EXPECT_EQ(row["n"], kTestImages);
    EXPECT_LE(row["accuracy_low"], row["accuracy"]);
    EXPECT_GE(row["accuracy_high"], row["accuracy"]);
    EXPECT_EQ(row["severity"] == 0, row["corruption"] == "none");
  }
  for (const Row& row : results::of_kind(rows, "reliability")) {
    int64_t count = 0;
    for (const Row& bin : row["bins"]) count += bin["count"].get<int64_t>();
    EXPECT_EQ(count, row["which"] == "top" ? kTestImages : 3 * kTestImages);
  }
}

TEST(Evaluate, ScoresAreThoseOfTheOutputs) {
  const data::Split split = shared().test_images();
  Inference how;
  how.mode = "batch";
  how.batch_size = 20;
  const torch::Tensor table = infer(shared().model(), split, how, {"head"}).probabilities[0];
  double right = 0;
  for (int64_t i = 0; i < split.count(); ++i) {
    right += table[i].argmax().item<int64_t>() == split.labels[i];
  }
  int compared = 0;
  for (const Row& row : results::parse_rows(whole_file(), "whole")) {
    if (row["kind"] != "scores" || row["mode"] != "batch" || row["severity"] != 0) continue;
    EXPECT_DOUBLE_EQ(row["accuracy"], right / static_cast<double>(split.count()));
    compared += 1;
  }
  EXPECT_EQ(compared, 1);
}

// Killed anywhere: between rows, within one, before the first.
TEST(Evaluate, GoesOnWhereItWasKilled) {
  const std::string& whole = whole_file();
  const size_t line = whole.find('\n') + 1;
  for (const size_t length :
       {size_t{0}, line - 1, line, line + 10, whole.size() / 2, whole.size() - 1, whole.size()}) {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    std::ofstream(folder.results(), std::ios::binary) << whole.substr(0, length);
    const EvaluateResult result = evaluate(folder, quick());
    EXPECT_EQ(train::contents(folder.results()), whole) << length;
    EXPECT_EQ(result.made == 0, length == whole.size());
    EXPECT_EQ(result.rows.size(), 30u);
  }
}

TEST(Evaluate, StopsWhenToldAndKeepsWhatIsDone) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateEvents events;
  bool stop = false;
  events.written = [&](const Rows&) { stop = true; };
  events.progress = [&](double) { return !stop; };
  EvaluateOptions options = quick();
  options.modes = {"augment", "tracked", "batch"};
  options.inference.copies = 200;
  const EvaluateResult result = evaluate(folder, options, events);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(train::contents(folder.results()).back(), '\n');
  EXPECT_EQ(result.made % 9, 1u);  // cells are whole
  EXPECT_GE(result.made, 1u + 9);
  EXPECT_LT(result.made, 1u + 5 * 9);
}

TEST(Evaluate, ThreadsDoNotChangeTheFile) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.threads = 3;
  evaluate(folder, options);
  EXPECT_EQ(train::contents(folder.results()), whole_file());
}

// One row as text each, in an order of their own.
std::vector<std::string> sorted_rows(const train::RunFolder& folder) {
  std::vector<std::string> lines;
  for (const Row& row : results::read_rows(folder.results())) lines.push_back(row.dump());
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Jobs on a few threads share models: what a job finds is never what another one left.
TEST(Evaluate, ThreadsAndTheOrderOfModesChangeNoRow) {
  const auto rows_of = [](int threads, bool diagnostics, std::vector<std::string> modes) {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    EvaluateOptions options = quick();
    options.corruptions = {"brightness"};
    options.severities = {0, 5};
    options.modes = std::move(modes);
    options.inference.copies = 2;
    options.threads = threads;
    options.diagnostics = diagnostics;
    options.diagnostic_samples = 12;
    evaluate(folder, options);
    return sorted_rows(folder);
  };
  const std::vector<std::string> modes = inference_modes(), reversed(modes.rbegin(), modes.rend());
  const std::vector<std::string> expected = rows_of(1, false, modes);
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(rows_of(threads, false, reversed), expected) << threads;
  }
  // t-SNE takes its time.
  EXPECT_EQ(rows_of(1, true, {"stream", "dataset"}), rows_of(3, true, {"dataset", "stream"}));
}

// The weights are read once. What becomes of the file later, as a training that goes on replaces
// it, is in no row.
TEST(Evaluate, RowsAreOfTheWeightsThatTheyName) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.command = [&](const EvaluateOptions&) {
    std::filesystem::remove(folder.model());
    return "qact eval";
  };
  evaluate(folder, options);
  EXPECT_EQ(train::contents(folder.results()), whole_file());
}

TEST(Evaluate, RefusesWeightsThatAreNoNumbers) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  const train::Model model = train::load_model(folder.model());
  const auto parameters = model.network->named_parameters();
  const std::string name = parameters.front().key();
  torch::NoGradGuard no_grad;
  for (const float wrong : {NAN, INFINITY}) {
    parameters.front().value().view(-1)[1] = wrong;
    train::save_model(folder.model(), *model.network, model.card);
    EXPECT_EQ(message_of([&] { evaluate(folder, quick()); }),
              "[safetensors] " + folder.model().string() + ": tensor '" + name +
                  "': expected finite numbers, got 1 of " +
                  std::to_string(parameters.front().value().numel()) + " that are nan or infinite");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.results()));
}

TEST(Evaluate, AddsWhatIsAskedForLater) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.modes = {"tracked"};
  options.limit = 10;
  const EvaluateResult first = evaluate(folder, options);
  EXPECT_EQ(first.made, 1u + 5 * 3);
  EXPECT_EQ(first.rows.front()["n"], 10);
  options.modes = {"tracked", "prior"};
  const EvaluateResult second = evaluate(folder, options);
  EXPECT_EQ(second.kept, first.rows.size());
  EXPECT_EQ(second.made, 5u * 3);
  options.inference.prior = 3;
  EXPECT_EQ(evaluate(folder, options).made, 5u * 3);
}

TEST(Evaluate, RowsOfReplacedWeightsGo) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.severities = {0};
  const size_t rows = evaluate(folder, options).made;
  train::Model model = train::load_model(folder.model());
  model.card.epoch += 1;
  train::save_model(folder.model(), *model.network, model.card);
  const EvaluateResult result = evaluate(folder, options);
  EXPECT_EQ(result.stale, rows);
  EXPECT_EQ(result.made, rows);
  EXPECT_EQ(results::read_rows(folder.results()).size(), rows);
}

// A set of the test images, as it would be published; returns its folder, whose name is the same
// for every seed.
std::string write_official(const ScratchFolder& scratch,
                           const std::vector<std::string>& corruptions, uint64_t seed) {
  const data::Split split = shared().test_images();
  corrupt::CleanImages clean{"bands", split.pixels, split.size, split.labels, {}, "test"};
  corrupt::WriteOptions write;
  write.folder = scratch.path / std::to_string(seed) / "bands-c";
  write.corruptions = corruptions;
  write.seed = seed;
  corrupt::write_corrupted(clean, write, {});
  return write.folder.string();
}

TEST(Evaluate, OfficialFilesGiveWhatMakingThemGives) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.official = write_official(scratch, {"brightness", "tone"}, 0);
  const Rows made = results::parse_rows(whole_file(), "whole");
  evaluate(folder, options);
  const Rows read = results::read_rows(folder.results());
  ASSERT_EQ(read.size(), made.size());
  for (size_t i = 1; i < made.size(); ++i) {
    EXPECT_EQ(read[i]["source"], "official");
    if (made[i]["kind"] == "scores") {
      EXPECT_EQ(read[i]["nll"], made[i]["nll"]) << i;
    } else {
      EXPECT_EQ(read[i]["bins"], made[i]["bins"]) << i;
    }
  }
}

// Other images under the same name are no reason to skip.
TEST(Evaluate, TellsDataApartByItsContents) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.corruptions = {"gaussian_noise"};
  const auto rows_with_seed = [&](uint64_t seed) {
    options.official = write_official(scratch, options.corruptions, seed);
    return evaluate(folder, options);
  };
  options.modes = {"batch"};
  options.diagnostics = true;
  options.diagnostic_samples = 10;
  const EvaluateResult first = rows_with_seed(0), other = rows_with_seed(1);
  EXPECT_EQ(results::of_kind(results::read_rows(folder.results()), "tsne").size(), 2u);
  EXPECT_EQ(evaluate(folder, options).made, 0u);
  ASSERT_EQ(first.rows.size(), other.rows.size());
  for (size_t i = 0; i < first.rows.size(); ++i) {
    const bool clean = first.rows[i]["severity"] == 0;
    EXPECT_EQ(first.rows[i]["data_hash"] == other.rows[i]["data_hash"], clean);
  }
}

// Rows that do not say all that tells them apart cannot be gone on with.
TEST(Evaluate, RefusesRowsOfAnotherVersion) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  Rows rows = results::parse_rows(whole_file(), "whole");
  for (Row& row : rows) row.erase("training");
  results::write_rows(folder.results(), rows);
  const std::string before = train::contents(folder.results());
  const std::string message = message_of([&] { evaluate(folder, quick()); });
  expect_in("\"training\"", message);
  expect_in(folder.results().string() + ": remove the file", message);
  EXPECT_EQ(train::contents(folder.results()), before);
}

// The order in which sets were evaluated decides nothing: each has a curve of its own.
TEST(Evaluate, OfficialSetsHaveCurvesOfTheirOwn) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.corruptions = {"gaussian_noise", "brightness"};
  options.modes = {"batch"};
  options.classifiers = {"head"};
  for (const uint64_t seed : {1, 2}) {
    options.official = write_official(scratch, options.corruptions, seed);
    evaluate(folder, options);
  }
  const auto all = results::curves(results::scores(results::read_rows(folder.results())));
  ASSERT_EQ(all.size(), 2u);
  for (const results::Curve& curve : all) {
    EXPECT_EQ(curve.scores.size(), 5u);
    const std::string seed = &curve == &all[0] ? "1" : "2";
    EXPECT_EQ(curve.setting.official, (scratch.path / seed / "bands-c").string());
  }
}

// Whatever can change what is learnt is in the rows, so that it tells them apart.
TEST(Evaluate, RowsSayWhatTheRunWasTrainedWith) {
  const std::set<std::string> elsewhere = {"model", "activation", "placement", "loss", "seed"};
  const std::set<std::string> without_effect = {"data-dir",        "workers",
                                                "save-every",      "cuda-graph",
                                                "fit-classifiers", "checkpoint-activations"};
  const train::ModelCard card;
  const train::TrainConfig before;
  train::TrainConfig config;
  std::set<std::string> absent;
  visit_fields(config, [&](const char* name, auto& field, const char*) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>) {
      field += "other";
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = !field;
    } else if constexpr (std::is_arithmetic_v<Field>) {
      field += 1;
    } else {
      field.push_back(7);
    }
    if (training_of(config, card, "best") == training_of(before, card, "best")) absent.insert(name);
    config = train::TrainConfig();
  });
  std::set<std::string> expected = elsewhere;
  expected.insert(without_effect.begin(), without_effect.end());
  EXPECT_EQ(absent, expected);

  for (const Row& row : results::parse_rows(whole_file(), "whole")) {
    if (row["kind"] == "config") continue;
    EXPECT_EQ(row["training"]["epochs"], 1);
    EXPECT_EQ(row["training"]["trained-epochs"], 1);
    EXPECT_EQ(row["training"]["early-stages"], before.early_stages);
  }
}

TEST(Evaluate, OneOfManyGpusIsAsGoodAsAnother) {
  const train::ModelCard card;
  train::TrainConfig one, other;
  one.device = "cuda:0", other.device = "cuda:1";
  one.threads = 2, other.threads = 16;
  EXPECT_EQ(training_of(one, card, "best"), training_of(other, card, "best"));
}

// A folder that was added to, or another one of the same name.
TEST(Evaluate, TrainingImagesTellRunsApart) {
  const train::TrainConfig config;
  train::ModelCard one, other;
  one.data_hash = "1", other.data_hash = "2";
  EXPECT_NE(training_of(config, one, "best"), training_of(config, other, "best"));
}

// A run that is under way is not the run at its end; where the epoch is chosen, it is an outcome.
TEST(Evaluate, EpochsTellLastWeightsApart) {
  train::TrainConfig config;
  train::ModelCard early, late;
  early.epoch = 3, late.epoch = 20;
  EXPECT_NE(training_of(config, early, "model"), training_of(config, late, "model"));
  EXPECT_EQ(training_of(config, early, "best"), training_of(config, late, "best"));
  config.early_stopping = 0.1;
  EXPECT_EQ(training_of(config, early, "model"), training_of(config, late, "model"));
}

TEST(Evaluate, OfficialFilesAreCheckedFirst) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick();
  options.official = (scratch.path / "none").string();
  expect_in("expected a folder with brightness.npy, got " + options.official,
            message_of([&] { evaluate(folder, options); }));
  EXPECT_FALSE(std::filesystem::exists(folder.results()));
}

TEST(Evaluate, RefusesWhatItCannotDo) {
  const auto refused = [](auto change) {
    EvaluateOptions options = quick();
    change(options);
    return message_of([&] { check(options); });
  };
  expect_in("got 'own'", refused([](auto& o) { o.modes = {"own"}; }));
  expect_in("within 0 and 5, got 6", refused([](auto& o) { o.severities = {6}; }));
  expect_in("got rain", refused([](auto& o) { o.corruptions = {"rain"}; }));
  expect_in("'worst'", refused([](auto& o) { o.weights = "worst"; }));
  expect_in("--modes of one or more, got none", refused([](auto& o) { o.modes = {}; }));
  expect_in("--severities of one or more", refused([](auto& o) { o.severities = {}; }));
  expect_in("within 0 and 5, got -1", refused([](auto& o) { o.severities = {0, -1}; }));
  expect_in("--limit of 0 or more images, got -1", refused([](auto& o) { o.limit = -1; }));
  expect_in("--diagnostic-samples of 1 or", refused([](auto& o) { o.diagnostic_samples = 0; }));
  expect_in("got rain", refused([](auto& o) { o.diagnostic_corruption = "rain"; }));
  EXPECT_EQ(refused([](auto&) {}), "nothing was thrown");
  expect_in("nowhere", message_of([] { evaluate({"nowhere"}, quick()); }));
}

TEST(RowFile, HasOneWriter) {
  const ScratchFolder scratch;
  const RowFile file(scratch.path / "results.jsonl");
  expect_in("only writer", message_of([&] { RowFile(scratch.path / "results.jsonl"); }));
}

}  // namespace
}  // namespace qact::eval
