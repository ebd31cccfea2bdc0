#include "qact/results/evaluation.h"

#include <gtest/gtest.h>

#include "tests/results/example_rows.h"

namespace qact::results {
namespace {

TEST(Evaluation, RoundTrips) {
  Evaluation e = example_evaluation("fog", 3);
  e.setting.prior = 16.5;
  e.which = "top";
  e.severities = {0, 5};
  const Row row = to_row(e);
  EXPECT_EQ(to_row(evaluation_of(row)), row);
  EXPECT_TRUE(row["copies"].is_null());
  EXPECT_FALSE(row.contains("layer"));
  EXPECT_EQ(row["training"]["lr"], 0.1);
}

}  // namespace
}  // namespace qact::results
