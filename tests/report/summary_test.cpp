#include "qact/report/summary.h"

#include <gtest/gtest.h>

#include "qact/report/sections.h"
#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

TEST(Summary, SaysWhatWinsWhateverTheNumbersAre) {
  const auto lines = verdict(groups(example_rows())[0]);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "For batches of 500 of one corruption, at severity 1: QAct, batch statistics, 70.0 %; "
            "of another activation ReLU, running statistics, 45.0 %.");
  EXPECT_EQ(lines[1],
            "QAct, batch statistics: 90.0 % of the uncorrupted images, 70.0 % at severity 1.");
  EXPECT_EQ(lines[2],
            "Against ReLU, running statistics: 25.0 points more correct at severity 1, and a drop "
            "that is 30.0 points smaller.");
  EXPECT_EQ(lines[3], "Under random tone curves of severity 1: QAct, batch statistics 85.0 %.");
}

// What single images have: it is no news that a batch helps against a network without one.
TEST(Summary, ComparesRunningStatisticsWithRunningOnes) {
  const auto lines = verdict(groups(joined(
      example_rows(),
      {score_row("qact", "tracked", "none", 0, 0.8), score_row("qact", "tracked", "fog", 1, 0.5),
       score_row("qact", "tracked", "snow", 1, 0.3), score_row("relu", "batch", "none", 0, 0.95),
       score_row("relu", "batch", "fog", 1, 0.9), score_row("relu", "batch", "snow", 1, 0.9)}))[0]);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[5],
            "QAct, running statistics: 80.0 % of the uncorrupted images, 40.0 % at severity 1.");
  EXPECT_EQ(lines[6],
            "Against ReLU, running statistics: 5.0 points fewer correct at severity 1, and a drop "
            "that is 10.0 points smaller.");
}

// No line of curves without a mean over the corruptions, and no drop without clean images.
TEST(Summary, ComparesOnlyWhatWasMeasured) {
  results::Rows rows = {
      score_row("relu", "tracked", "none", 0, 0.9), score_row("relu", "tracked", "fog", 1, 0.5),
      score_row("relu", "batch", "none", 0, 0.9),   score_row("relu", "batch", "tone", 1, 0.6),
      score_row("qact", "batch", "fog", 1, 0.7),    score_row("qact", "tracked", "none", 0, 0.9),
      score_row("qact", "tracked", "tone", 1, 0.8)};
  const auto lines = verdict(groups(rows)[0]);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "QAct, batch statistics: 70.0 % at severity 1.");
  EXPECT_EQ(lines[2], "Against ReLU, running statistics: 20.0 points more correct at severity 1.");
  EXPECT_EQ(lines[3],
            "Under random tone curves of severity 1: QAct, running statistics 80.0 %; ReLU, batch "
            "statistics 60.0 %.");
}

// ReLU adapted to batches of another size is not what QAct is held against.
TEST(Summary, ComparesInBatchesOfTheSameSize) {
  results::Rows rows = example_rows();
  for (const char* corruption : {"fog", "snow"}) {
    rows.push_back(score_row("relu", "batch", corruption, 1, 0.6));
    rows.back()["batch_size"] = 16;
  }
  for (const std::string& line : verdict(groups(rows)[0])) {
    EXPECT_FALSE(line.starts_with("Against ReLU, batch statistics")) << line;
  }
}

// ReLU was evaluated on other images twice: fewer, and corrupted with another seed.
TEST(Summary, ComparesOnTheSameImages) {
  results::Rows rows = example_rows();
  for (const char* corruption : {"fog", "snow"}) {
    results::Row row = score_row("relu", "tracked", corruption, 1, 0.6);
    row.update({{"limit", 10}, {"n", 10}});
    rows.push_back(row);
  }
  for (results::Row& row : rows) {
    if (row["activation"] == "relu" && row["limit"] == 0) row["data_seed"] = 7;
  }
  for (const std::string& line : verdict(groups(rows)[0])) {
    EXPECT_FALSE(line.starts_with("Against")) << line;
  }
}

// On every stream QAct is held against ReLU on the same stream, also with TENT; not against
// another.
TEST(Summary, ComparesOnTheSameStream) {
  results::Rows rows = example_rows();
  results::Row mixed = score_row("qact", "batch", "fog", 1, 0.6);
  mixed["stream"] = "mixed";
  for (const char* corruption : {"fog", "snow"}) {
    mixed["corruption"] = corruption;
    rows.push_back(mixed);
  }
  results::Row tent = score_row("relu", "batch", "fog", 1, 0.7);
  tent["adapt"] = "tent";
  for (const char* corruption : {"fog", "snow"}) {
    tent["corruption"] = corruption;
    rows.push_back(tent);
  }
  const auto lines = verdict(groups(rows)[0]);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_TRUE(lines[3].starts_with("Against ReLU, running statistics: 25.0")) << lines[3];
  EXPECT_TRUE(lines[4].starts_with("Against ReLU, TENT, batch statistics: 0.0")) << lines[4];
  EXPECT_EQ(lines[5], "QAct, batch statistics, mixed corruptions: 60.0 % at severity 1.");
  EXPECT_TRUE(lines[6].starts_with("Under random tone curves")) << lines[6];
  int paragraphs = 0;
  for (const Block& block : summary(rows)) {
    if (const auto* text = std::get_if<Text>(&block)) paragraphs += text->text.starts_with("QAct");
  }
  EXPECT_EQ(paragraphs, 2);
}

}  // namespace
}  // namespace qact::report
