#include "qact/data/check.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Check, FindsWhatIsWrong) {
  for (const Finding& finding : check(open_dataset("mnist-small", ""))) {
    EXPECT_TRUE(finding.good) << finding.what << ": " << finding.expected << ", " << finding.found;
  }
  Dataset wrong = open_dataset("mnist-small", "");
  wrong.info.train = 1;
  wrong.info.test_balance = {200, 200, 200, 200, 200, 200, 200, 200, 201, 199};
  wrong.info.moments.mean = {0.14};
  std::string bad;
  for (const Finding& finding : check(wrong)) bad += finding.good ? "" : finding.what + ";";
  EXPECT_EQ(bad, "train images;train mean;test classes;");
}

}  // namespace
}  // namespace qact::data
