#include "qact/results/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/message.h"
#include "tests/results/example_rows.h"

namespace qact::results {
namespace {

std::string refusal(const Rows& rows) {
  return message_of([&] { scores(rows); });
}

TEST(Scores, SkipOtherKinds) {
  const auto all = scores({{{"kind", "config"}}, score_row(example_evaluation("fog", 3), 0.5)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].setting.activation, "qact");
  EXPECT_EQ(all[0].severity, 3);
  EXPECT_EQ(all[0].value("accuracy"), 0.5);
  EXPECT_TRUE(std::isnan(all[0].value("map100")));
  EXPECT_TRUE(std::isnan(all[0].value("brier")));
}

TEST(Scores, NamesTheFieldOfAnIncompleteRow) {
  const Row whole = score_row(example_evaluation("fog", 3), 0.5);
  for (const auto& [key, value] : whole.items()) {
    if (key == "kind" || key == "ece_top" || key == "map100" || key == "command") continue;
    Row row = whole;
    row.erase(key);
    EXPECT_NE(refusal({row}).find("\"" + key + "\""), std::string::npos) << key;
    if (value.is_null()) continue;
    row = whole;
    row[key] = value.is_string() ? Row(7) : Row("text");
    EXPECT_NE(refusal({row}).find("\"" + key + "\""), std::string::npos) << key;
  }
}

TEST(Scores, CountOnceAndTwoValuesAreAnError) {
  const Row row = score_row(example_evaluation("fog", 3), 0.5);
  EXPECT_EQ(scores({row, row}).size(), 1u);
  const std::string message = refusal({row, score_row(example_evaluation("fog", 3), 0.6)});
  EXPECT_NE(message.find("expected one accuracy of model \"0123456789abcdef\" under \"fog\""),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("got 0.5"), std::string::npos);
  EXPECT_NE(message.find("0.6"), std::string::npos);
}

}  // namespace
}  // namespace qact::results
