// Evaluations of several streams and methods of adaptation.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "qact/base/jobs.h"
#include "qact/eval/image_stream.h"
#include "qact/eval/jobs.h"
#include "qact/results/evaluation.h"
#include "qact/safetensors/torch/tensors.h"
#include "tests/base/message.h"
#include "tests/eval/quick_evaluation.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

EvaluateOptions all_streams() {
  EvaluateOptions options = quick_options();
  options.corruptions = {"contrast", "brightness"};
  options.severities = {0, 5};
  options.adapt = {"none", "tent"};
  options.streams = stream_names();
  return options;
}

std::string evaluated(const EvaluateOptions& options) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  evaluate(folder, options);
  return train::contents(folder.results());
}

const std::string& results_of_all_streams() {
  static const std::string text = evaluated(all_streams());
  return text;
}

// The scores by all that tells them apart here.
std::map<std::string, Row> scores_by_cell(const std::string& text) {
  std::map<std::string, Row> cells;
  for (const Row& row : results::of_kind(results::parse_rows(text, "all"), "scores")) {
    std::string name;
    for (const char* field : {"stream", "corruption", "mode", "adapt"}) {
      name += (name.empty() ? "" : " ") + row[field].get<std::string>();
    }
    EXPECT_TRUE(cells.emplace(name, row).second) << name;
  }
  return cells;
}

TEST(Streams, HaveRowsOfEveryCell) {
  const auto cells = scores_by_cell(results_of_all_streams());
  EXPECT_EQ(cells.size(),
            3u * 3 * 3);  // streams, corruptions and clean, tracked and batch and tent
  for (const auto& [name, row] : cells) {
    EXPECT_EQ(row["n"], kTestImages) << name;
    EXPECT_EQ(row["mixture"].is_null(), row["stream"] != "mixed") << name;
    if (row["stream"] == "mixed") {
      EXPECT_EQ(row["mixture"], "brightness+contrast") << name;
    }
    EXPECT_FALSE(row["adapt"] == "tent" && row["mode"] != "batch") << name;
  }
}

// What does not look at a batch does not depend on the stream; what does, does.
TEST(Streams, MatterWhereImagesSeeEachOther) {
  const auto cells = scores_by_cell(results_of_all_streams());
  for (const char* corruption : {"none", "brightness", "contrast"}) {
    const auto nll = [&](const std::string& stream, const std::string& how) {
      return cells.at(stream + " " + corruption + " " + how).at("nll").get<double>();
    };
    for (const char* stream : {"mixed", "correlated"}) {
      EXPECT_DOUBLE_EQ(nll(stream, "tracked none"), nll("single", "tracked none"));
      EXPECT_NE(nll(stream, "batch none"), nll("single", "batch none"));
      EXPECT_NE(nll(stream, "batch tent"), nll(stream, "batch none"));
    }
    EXPECT_NE(nll("single", "batch tent"), nll("single", "batch none"));
  }
}

// Scores of the mixed stream from its definition, without what evaluate() shares.
TEST(Streams, MixedScoresAreOfTheImagesOwnCorruption) {
  const train::Model model = trained_run().model();
  TestImagesOptions where;
  where.data = (trained_run().path / "data").string();
  where.classes = {model.card.options.classes, model.card.class_names};
  const TestImages images(where);
  const char* const names[] = {"brightness", "contrast"};
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels, sources;
  for (const int64_t at : mixed_order(2, kTestImages, 0)) {
    const data::Split split = images.read(names[at / kTestImages], 5);
    const int64_t i = at % kTestImages;
    pixels.insert(pixels.end(), split.image(i), split.image(i) + split.size.values());
    labels.push_back(split.labels[i]);
    sources.push_back(at / kTestImages);
  }
  InferenceOptions options;
  options.mode = "batch";
  options.batch_size = 20;
  const torch::Tensor table =
      infer(model, data::make_split(images.size(), 3, pixels, labels), options, {"head"})
          .probabilities[0];
  double right[2] = {0, 0};
  for (size_t i = 0; i < labels.size(); ++i) {
    right[sources[i]] += table[static_cast<int64_t>(i)].argmax().item<int64_t>() == labels[i];
  }
  const auto cells = scores_by_cell(results_of_all_streams());
  for (const int c : {0, 1}) {
    EXPECT_DOUBLE_EQ(
        cells.at(std::string("mixed ") + names[c] + " batch none").at("accuracy").get<double>(),
        right[c] / kTestImages);
  }
}

TEST(Streams, ResumeWhereTheyWereKilled) {
  const std::string& whole = results_of_all_streams();
  const size_t third = whole.size() / 3;
  for (const size_t length : {third, 2 * third, whole.size() - 1, whole.size()}) {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    std::ofstream(folder.results(), std::ios::binary) << whole.substr(0, length);
    const EvaluateResult result = evaluate(folder, all_streams());
    EXPECT_EQ(train::contents(folder.results()), whole) << length;
    EXPECT_EQ(result.made == 0, length == whole.size());
    EXPECT_EQ(result.rows.size(), 27u * 3);
  }
}

// Jobs adapt copies of the model that other jobs use afterwards.
TEST(Streams, DoNotDependOnTheNumberOfJobs) {
  for (const int threads : {2, 3}) {
    EvaluateOptions options = all_streams();
    options.threads = threads;
    EXPECT_EQ(evaluated(options), results_of_all_streams()) << threads;
  }
}

// The order of names is no part of a mixture; which names they are is.
TEST(Streams, OfAnotherMixtureAreComputedAnew) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = all_streams();
  options.streams = {"mixed"};
  options.adapt = {"none"};
  options.modes = {"batch"};
  EXPECT_EQ(evaluate(folder, options).made, 1u + 3 * 3);
  std::swap(options.corruptions[0], options.corruptions[1]);
  EXPECT_EQ(evaluate(folder, options).made, 0u);
  options.corruptions.emplace_back("fog");
  EXPECT_EQ(evaluate(folder, options).made, 4u * 3);
}

// Every row of the mixture depends on frost's textures.
TEST(Streams, MixedRowsNameTheTexturesOfFrost) {
  EvaluateOptions options = all_streams();
  options.corruptions = {"frost", "fog"};
  options.modes = {"batch"};
  options.adapt = {"none"};
  for (const auto& [name, row] : scores_by_cell(evaluated(options))) {
    const bool depends =
        row["severity"] != 0 && (row["stream"] == "mixed" || row["corruption"] == "frost");
    EXPECT_EQ(row["frost"].is_null(), !depends) << name;
  }
}

TEST(Streams, TakeBatchesFromOneImageOn) {
  EvaluateOptions options = all_streams();
  options.inference.batch_size = 1;
  options.modes = {"tracked", "prior"};
  options.adapt = {"none"};
  EXPECT_EQ(scores_by_cell(evaluated(options)).size(), 3u * 3 * 2);
  options.modes = {"batch"};
  options.adapt = {"tent"};
  expect_in("expected batches of 2 or more images in mode batch for this network, got one image",
            message_of([&] { evaluated(options); }));
}

TEST(Streams, RefuseWhatTheyCannotDo) {
  const auto refused = [](auto change) {
    EvaluateOptions options = quick_options();
    change(options);
    return message_of([&] { check(options); });
  };
  EXPECT_EQ(refused([](auto& o) { o.streams = {"single", "mix"}; }),
            "[eval] expected --stream of single, mixed, correlated, got 'mix'");
  EXPECT_EQ(refused([](auto& o) { o.streams = {}; }),
            "[eval] expected --stream of one or more, got none");
  EXPECT_EQ(refused([](auto& o) { o.adapt = {"bn"}; }),
            "[adapt] expected one of none, tent, got 'bn'");
  EXPECT_EQ(refused([](auto& o) { o.adapt = {}; }),
            "[eval] expected --adapt of one or more, got none");
  EXPECT_EQ(refused([](auto& o) { o.adapt = {"none", "tent"}, o.modes = {"tracked", "prior"}; }),
            "[eval] expected --modes with batch for --adapt tent, got tracked, prior");
  EXPECT_EQ(refused([](auto& o) { o.adapt = {"none", "tent"}; }), kNothingThrown);
}

// Logits that no loss has trained say nothing.
TEST(Streams, TentNeedsATrainedHead) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  train::Model model = train::load_model(folder.model());
  model.card.loss = "triplet";
  EXPECT_EQ(message_of([&] { check_adaptation(model, "tent"); }),
            "[tent] expected a network whose logits were trained, with the loss cross-entropy, got "
            "triplet");
  EXPECT_EQ(message_of([&] { check_adaptation(model, "none"); }), kNothingThrown);
}

// As Ctrl-C does, by an exception in the middle of a stream.
TEST(Streams, ThatAreInterruptedLeaveTheModelAsItWas) {
  const train::Model model = trained_run().model();
  const auto state = [&] {
    std::vector<torch::Tensor> all;
    for (const auto& [name, tensor] : safetensors::state_dict(*model.network)) {
      all.push_back(tensor.detach().clone());
    }
    return all;
  };
  const std::vector<torch::Tensor> before = state();
  InferenceOptions options;
  options.mode = "batch";
  options.adapt = "tent";
  options.batch_size = 10;
  int64_t images = 0;
  bool changed = false;
  const Advance interrupt = [&](int64_t more) {
    const std::vector<torch::Tensor> now = state();
    for (size_t i = 0; i < now.size(); ++i) changed |= !torch::equal(now[i], before[i]);
    if ((images += more) > 20) throw base::Interrupted();
  };
  EXPECT_THROW(infer(model, trained_run().test_images(), options, {"head"}, interrupt),
               base::Interrupted);
  EXPECT_TRUE(changed);
  const std::vector<torch::Tensor> after = state();
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(torch::equal(after[i], before[i])) << i;
}

TEST(Jobs, PairMethodsWithTheModesThatTheyWorkIn) {
  EvaluateOptions options;
  options.modes = {"tracked", "batch", "prior"};
  options.adapt = {"none", "tent"};
  std::vector<std::string> found;
  for (const Predictor& each : predictors(options)) found.push_back(each.mode + " " + each.adapt);
  EXPECT_EQ(found,
            (std::vector<std::string>{"tracked none", "batch none", "batch tent", "prior none"}));
}

}  // namespace
}  // namespace qact::eval
