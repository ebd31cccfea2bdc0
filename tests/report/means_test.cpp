#include "qact/report/means.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qact/report/chart.h"
#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

TEST(Means, AreThoseOfThePage) {
  const Json all = means(joined(example_rows(), {score_row("qact", "batch", "none", 0, 0.8, 1),
                                                 score_row("qact", "batch", "fog", 1, 0.7, 1),
                                                 score_row("qact", "batch", "snow", 1, 0.5, 1)}));
  ASSERT_EQ(all.size(), 3u);  // QAct, its tone, ReLU
  EXPECT_EQ(all[0]["label"], "QAct, batch statistics");
  EXPECT_EQ(all[0]["seeds"], Json({0, 1}));
  EXPECT_EQ(all[0]["setting"]["training"]["lr"], 0.1);
  EXPECT_EQ(all[0]["corruptions"], Json({"fog", "snow"}));
  const Json& accuracy = all[0]["metrics"]["accuracy"];
  EXPECT_NEAR(accuracy["mean"]["1"].get<double>(), 0.65, 1e-12);
  EXPECT_NEAR(accuracy["deviation"]["1"].get<double>(), 0.1 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(accuracy["drop"]["mean"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(accuracy["drop"]["seeds"], 2);
  EXPECT_EQ(all[1]["kind"], "tone");
  EXPECT_EQ(all[1]["metrics"]["accuracy"]["mean"]["1"], 0.85);
  EXPECT_FALSE(all[0]["metrics"].contains("map100"));
}

}  // namespace
}  // namespace qact::report
