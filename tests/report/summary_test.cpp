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

}  // namespace
}  // namespace qact::report
