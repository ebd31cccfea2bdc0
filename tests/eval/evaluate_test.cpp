#include "qact/eval/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "qact/results/evaluation.h"
#include "tests/base/message.h"
#include "tests/eval/quick_evaluation.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

TEST(Evaluate, WritesARowOfEachKindForEachCell) {
  const Rows rows = results::parse_rows(expected_results(), "whole");
  ASSERT_EQ(rows.size(), 1u + 5 * 2 * 3);
  EXPECT_EQ(rows.front()["kind"], "config");
  EXPECT_EQ(rows.front()["config"]["model"], "mlp");
  for (const Row& row : results::of_kind(rows, "scores")) {
    for (const char* name :
         {"dataset",    "model",  "activation", "placement",    "loss",     "mode",
          "adapt",      "stream", "classifier", "corruption",   "severity", "seed",
          "batch_size", "n",      "accuracy",   "ece_marginal", "ece_top",  "map100",
          "nll",        "brier",  "ece_plain",  "model_hash",   "versions", "command"}) {
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
  const data::Split split = trained_run().test_images();
  InferenceOptions options;
  options.mode = "batch";
  options.batch_size = 20;
  const torch::Tensor table =
      infer(trained_run().model(), split, options, {"head"}).probabilities[0];
  double right = 0;
  for (int64_t i = 0; i < split.count(); ++i) {
    right += table[i].argmax().item<int64_t>() == split.labels[i];
  }
  int compared = 0;
  for (const Row& row : results::parse_rows(expected_results(), "whole")) {
    if (row["kind"] != "scores" || row["mode"] != "batch" || row["severity"] != 0) continue;
    EXPECT_DOUBLE_EQ(row["accuracy"], right / static_cast<double>(split.count()));
    compared += 1;
  }
  EXPECT_EQ(compared, 1);
}

// Killed anywhere: between rows, within one, before the first.
TEST(Evaluate, ResumesWhereItWasKilled) {
  const std::string& whole = expected_results();
  const size_t line = whole.find('\n') + 1;
  for (const size_t length :
       {size_t{0}, line - 1, line, line + 10, whole.size() / 2, whole.size() - 1, whole.size()}) {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    std::ofstream(folder.results(), std::ios::binary) << whole.substr(0, length);
    const EvaluateResult result = evaluate(folder, quick_options());
    EXPECT_EQ(train::contents(folder.results()), whole) << length;
    EXPECT_EQ(result.made == 0, length == whole.size());
    EXPECT_EQ(result.rows.size(), 30u);
  }
}

TEST(Evaluate, StopsWhenToldAndKeepsTheRowsSoFar) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateEvents events;
  bool stop = false;
  events.written = [&](const Rows&) { stop = true; };
  events.progress = [&](double) { return !stop; };
  EvaluateOptions options = quick_options();
  options.modes = {"augment", "tracked", "batch"};
  options.inference.copies = 200;
  const EvaluateResult result = evaluate(folder, options, events);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(train::contents(folder.results()).back(), '\n');
  EXPECT_EQ(result.made % 3, 1u);  // rows of a predictor are together
  EXPECT_GE(result.made, 1u + 3);
  EXPECT_LT(result.made, 1u + 5 * 9);
}

// The weights are read once. A later change of the file, as by a training that goes on, is in no
// row.
TEST(Evaluate, RowsAreOfTheWeightsThatTheyName) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
  options.command = [&](const EvaluateOptions&) {
    std::filesystem::remove(folder.model());
    return "qact eval";
  };
  evaluate(folder, options);
  EXPECT_EQ(train::contents(folder.results()), expected_results());
}

TEST(Evaluate, RefusesWeightsThatAreNotFinite) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  const train::Model model = train::load_model(folder.model());
  const auto parameters = model.network->named_parameters();
  const std::string name = parameters.front().key();
  torch::NoGradGuard no_grad;
  for (const float wrong : {NAN, INFINITY}) {
    parameters.front().value().view(-1)[1] = wrong;
    train::save_model(folder.model(), *model.network, model.card);
    EXPECT_EQ(message_of([&] { evaluate(folder, quick_options()); }),
              "[safetensors] " + folder.model().string() + ": tensor '" + name +
                  "': expected finite numbers, got 1 of " +
                  std::to_string(parameters.front().value().numel()) + " that are nan or infinite");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.results()));
}

TEST(Evaluate, AddsWhatIsAskedForLater) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
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

TEST(Evaluate, ComputesWhatIsNamedTwiceOnce) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
  options.modes = {"tracked", "batch", "tracked"};
  options.adapt = {"none", "none"};
  options.streams = {"single", "single"};
  options.classifiers = {"head", "head"};
  options.corruptions = {"brightness", "tone", "brightness"};
  options.severities = {5, 0, 1, 5};
  size_t computed = 0;
  EvaluateEvents events;
  events.written = [&](const Rows& rows) { computed += rows.size(); };
  EXPECT_EQ(evaluate(folder, options, events).made, 1u + 5 * 2 * 3);
  EXPECT_EQ(computed, 5u * 2 * 3);
  EXPECT_EQ(train::contents(folder.results()), expected_results());
}

TEST(Evaluate, RemovesRowsOfReplacedWeights) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
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

// Rows that lack a field which identifies them cannot be added to.
TEST(Evaluate, RefusesRowsOfAnotherVersion) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  Rows rows = results::parse_rows(expected_results(), "whole");
  for (Row& row : rows) row.erase("training");
  results::write_rows(folder.results(), rows);
  const std::string before = train::contents(folder.results());
  const std::string message = message_of([&] { evaluate(folder, quick_options()); });
  expect_in("\"training\"", message);
  expect_in(folder.results().string() + ": remove the file", message);
  EXPECT_EQ(train::contents(folder.results()), before);
}

TEST(Evaluate, RefusesWhatItCannotDo) {
  const auto refused = [](auto change) {
    EvaluateOptions options = quick_options();
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
  expect_in("--diagnostics with --diagnostic-corruption, got none",
            refused([](auto& o) { o.diagnostic_corruption = "fog"; }));
  expect_in("got rain",
            refused([](auto& o) { o.diagnostics = true, o.diagnostic_corruption = "rain"; }));
  EXPECT_EQ(refused([](auto&) {}), "nothing was thrown");
  expect_in("nowhere", message_of([] { evaluate({"nowhere"}, quick_options()); }));
}

}  // namespace
}  // namespace qact::eval
