#include "qact/results/where.h"

#include <gtest/gtest.h>

#include "tests/base/message.h"
#include "tests/results/example_rows.h"

namespace qact::results {
namespace {

// Two learning rates in two modes, with their configurations, and a row of another kind.
Rows example_rows() {
  Rows rows = {{{"kind", "toy_map"}}};
  for (const char* lr : {"0.1", "0.01"}) {
    Evaluation e = example_evaluation("fog", 1);
    e.model_hash = lr;
    e.setting.training.json = std::string(R"({"lr":)") + lr + R"(,"momentum":0.9})";
    rows.push_back({{"kind", "config"}, {"model_hash", lr}});
    for (const char* mode : {"batch", "tracked"}) {
      e.setting.mode = mode;
      rows.push_back(score_row(e, 0.5));
    }
  }
  return rows;
}

size_t left(const std::vector<std::string>& words) {
  return where(example_rows(), parse_where(words)).size();
}

TEST(Where, KeepsWhatFits) {
  EXPECT_EQ(left({}), 7u);
  EXPECT_EQ(left({"mode=batch"}), 5u);  // with both configurations and the other kind
  EXPECT_EQ(left({"mode=batch", "lr=0.01"}), 3u);
  EXPECT_EQ(left({"lr=1e-2"}), 4u);
  EXPECT_EQ(left({"train.lr=0.01"}), 4u);
  EXPECT_EQ(left({"mode=batch", "mode=tracked"}), 7u);
  EXPECT_EQ(left({"mode=batch", "tracked", "lr=0.1"}), 4u);
  EXPECT_EQ(left({"batch-size=500"}), 7u);
  EXPECT_EQ(left({"momentum=none"}), 7u);  // of the row, which is stream's
  EXPECT_EQ(left({"train.momentum=0.9"}), 7u);
}

TEST(Where, NamesTheKeysThereAre) {
  const std::string message = message_of([] { left({"mood=batch"}); });
  EXPECT_EQ(message.find("[report] expected --where to name one of activation, adapt, "), 0u);
  EXPECT_NE(message.find(" lr, "), std::string::npos) << message;
  EXPECT_NE(message.find("train.momentum"), std::string::npos) << message;
  EXPECT_NE(message.find("got 'mood'"), std::string::npos) << message;
}

TEST(Where, SaysWhatLeavesNothing) {
  EXPECT_EQ(message_of([] { left({"mode=batch", "lr=3"}); }),
            "[report] expected --where to leave rows of an evaluation, got none with lr=3 among "
            "those with mode=batch: there is lr=0.01, 0.1");
  EXPECT_NE(message_of([] {
              where({{{"kind", "toy_map"}}}, parse_where({"mode=batch"}));
            }).find("got none"),
            std::string::npos);
}

TEST(Where, RefusesWhatIsNoCondition) {
  for (const char* word : {"mode", "=batch", ""}) {
    EXPECT_NE(message_of([&] { parse_where({word}); }).find("expected --where KEY=VALUE"),
              std::string::npos)
        << word;
  }
}

TEST(Where, ImagesWithoutFrostFitAnyTextures) {
  Evaluation frost = example_evaluation("frost", 1), other = frost;
  frost.setting.frost = "official";
  other.setting.frost = "procedural";
  const Rows rows = {score_row(example_evaluation("fog", 1), 0.5), score_row(frost, 0.5),
                     score_row(other, 0.5)};
  EXPECT_EQ(where(rows, parse_where({"frost=official"})).size(), 2u);
}

}  // namespace
}  // namespace qact::results
