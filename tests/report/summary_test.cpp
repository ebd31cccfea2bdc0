#include "qact/report/summary.h"

#include <gtest/gtest.h>

#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

TEST(Summary, SaysWhatWinsWhateverTheNumbersAre) {
  const auto lines = verdict(groups(example_rows())[0]);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "QAct, batch statistics: 90.0 % of the uncorrupted images, 70.0 % at severity 1.");
  EXPECT_EQ(lines[1],
            "Against ReLU, running statistics: 25.0 points more correct at severity 1, and a drop "
            "that is 30.0 points smaller.");
  EXPECT_EQ(lines[2], "Under random tone curves of severity 1: QAct, batch statistics 85.0 %.");
}

// What single images have: it is no news that a batch helps against a network without one.
TEST(Summary, ComparesRunningStatisticsWithRunningOnes) {
  const auto lines = verdict(groups(joined(
      example_rows(),
      {score_row("qact", "tracked", "none", 0, 0.8), score_row("qact", "tracked", "fog", 1, 0.5),
       score_row("qact", "tracked", "snow", 1, 0.3), score_row("relu", "batch", "none", 0, 0.95),
       score_row("relu", "batch", "fog", 1, 0.9), score_row("relu", "batch", "snow", 1, 0.9)}))[0]);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[3],
            "QAct, running statistics: 80.0 % of the uncorrupted images, 40.0 % at severity 1.");
  EXPECT_EQ(lines[4],
            "Against ReLU, running statistics: 5.0 points fewer correct at severity 1, and a drop "
            "that is 10.0 points smaller.");
}

}  // namespace
}  // namespace qact::report
