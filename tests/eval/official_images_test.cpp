// Evaluation on published corrupted sets, and on those that `qact corrupt` writes.
#include <gtest/gtest.h>

#include "qact/corrupt/write.h"
#include "qact/results/curve.h"
#include "tests/base/message.h"
#include "tests/eval/quick_evaluation.h"

namespace qact::eval {
namespace {

using results::Rows;

// Writes a corrupted set of the test images in the published layout. Returns its folder, whose name
// is the same for every seed.
std::string write_official(const ScratchFolder& scratch,
                           const std::vector<std::string>& corruptions, uint64_t seed) {
  const data::Split split = trained_run().test_images();
  corrupt::CleanImages clean{"bands", split.pixels, split.size, split.labels, {}, "test"};
  corrupt::WriteOptions write;
  write.folder = scratch.path / std::to_string(seed) / "bands-c";
  write.corruptions = corruptions;
  write.seed = seed;
  corrupt::write_corrupted(clean, write, {});
  return write.folder.string();
}

TEST(OfficialImages, GiveTheSameScoresAsCorruptingHere) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
  options.official = write_official(scratch, {"brightness", "tone"}, 0);
  const Rows made = results::parse_rows(expected_results(), "whole");
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

// Rows of other images under the same name do not count as present.
TEST(OfficialImages, AreToldApartByTheirContents) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
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

// Whatever the order in which the folders were evaluated.
TEST(OfficialImages, OfEachFolderHaveACurve) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
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

TEST(OfficialImages, AreCheckedFirst) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
  options.official = (scratch.path / "none").string();
  expect_in("expected a folder with brightness.npy, got " + options.official,
            message_of([&] { evaluate(folder, options); }));
  EXPECT_FALSE(std::filesystem::exists(folder.results()));
}

}  // namespace
}  // namespace qact::eval
