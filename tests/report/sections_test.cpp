// The sections of an evaluation.
#include <gtest/gtest.h>

#include "qact/report/chart.h"
#include "qact/report/page.h"
#include "qact/report/paper.h"
#include "tests/base/message.h"
#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

TEST(Sections, TablesStandBesideThePapers) {
  EXPECT_TRUE(paper_drops("mnist-small").empty());
  for (const char* dataset : {"cifar10", "cifar100", "tiny-imagenet"}) {
    for (const PaperDrop& drop : paper_drops(dataset)) {
      if (drop.drops.size() == 5) continue;
      ASSERT_EQ(drop.drops.size(), 15u);
      EXPECT_NEAR(drop.drops[0] + drop.drops[5], drop.drops[1], 0.02);  // 0-1 and 1-2 are 0-2
      EXPECT_NEAR(drop.drops[3] + drop.drops[14], drop.drops[4], 0.02);
    }
  }
  const std::string page = make_page("title", example_rows());
  EXPECT_NE(page.find("paper: ResNet18, QAct"), std::string::npos);
  EXPECT_NE(page.find("qact eval &lt;run&gt;"), std::string::npos);
}

TEST(Sections, DrawsWhatRowsHold) {
  results::Rows rows = example_rows();
  std::vector<std::string> names;
  for (const Chart& chart : make_charts(rows)) names.push_back(chart.name);
  const std::vector<std::string> expected = {
      "cifar10_resnet18_accuracy",  "cifar10_resnet18_drop",
      "cifar10_resnet18_ece_top",   "cifar10_resnet18_heat_1",
      "cifar10_resnet18_heat_2",    "cifar10_resnet18_tone_accuracy",
      "cifar10_resnet18_tone_drop", "cifar10_resnet18_tone_ece_top"};
  EXPECT_EQ(names, expected);
  rows.push_back({{"kind", "tsne"}, {"corruption", "fog"}});
  EXPECT_THROW(make_charts(rows), std::runtime_error);
}

// Images in the bins of the diagrams at severity 1.
int64_t values_drawn(const results::Rows& rows) {
  int64_t count = 0;
  for (const Chart& chart : make_charts(rows)) {
    if (chart.name != "cifar10_resnet18_reliability_top_1") continue;
    for (const Json& value : chart.spec["data"]["values"]) count += value["values"].get<int64_t>();
  }
  return count;
}

TEST(Sections, DiagramsAreOfTheCorruptionsThatTablesAreOf) {
  results::Rows rows = example_rows();
  for (const char* corruption : {"fog", "snow", "tone"}) {
    rows.push_back(score_row("qact", "batch", corruption, 1, 0.8));
    rows.back()["kind"] = "reliability";
    rows.back()["which"] = "top";
    rows.back()["bins"] = {{{"confidence", 0.9}, {"accuracy", 0.8}, {"count", 1000}}};
  }
  EXPECT_EQ(values_drawn(rows), 2000);
}

// Of a file that was edited: the row and its field, not where a parser was.
TEST(Sections, NameTheFieldThatIsDamaged) {
  for (const auto& [kind, field] : {std::pair("reliability", "bins"),
                                    {"tsne", "x"},
                                    {"tsne", "label"},
                                    {"tsne", "point_severity"}}) {
    results::Rows rows = example_rows();
    rows.push_back(score_row("qact", "batch", "fog", 1, 0.8));
    rows.back().update({{"kind", kind}, {"which", "top"}, {"bins", results::Rows()}});
    rows.back().update({{"x", {1}}, {"y", {1}}, {"label", {0}}, {"point_severity", {0}}});
    EXPECT_NO_THROW(make_charts(rows)) << kind;
    rows.back()[field] = 3;
    EXPECT_TRUE(message_of([&] { make_charts(rows); })
                    .starts_with("[results] expected a row with a fitting \"" + std::string(field) +
                                 "\", got {\"kind\":\"" + kind))
        << message_of([&] { make_charts(rows); });
  }
}

// What QAct adds is told of ReLU in batches of the same size, or not at all.
TEST(Sections, TheGainIsInBatchesOfOneSize) {
  const auto gains = [](const results::Rows& rows) {
    std::vector<std::string> captions;
    for (const Chart& chart : make_charts(rows)) {
      if (chart.name.ends_with("heat_gain")) captions.push_back(chart.caption);
    }
    return captions;
  };
  const auto in_batches = [](const char* activation, int64_t size) {
    results::Row row = score_row(activation, "batch", "fog", 1, 0.8);
    row["batch_size"] = size;
    return row;
  };
  results::Rows rows = {in_batches("qact", 16), in_batches("relu", 500)};
  EXPECT_TRUE(gains(rows).empty());
  rows.push_back(in_batches("qact", 500));
  EXPECT_EQ(gains(rows),
            (std::vector<std::string>{
                "What the activation adds: accuracy of QAct, batch statistics, batches of 500 less "
                "that of ReLU, batch statistics, batches of 500, points."}));
}

TEST(Sections, NumbersOfHeatMapsCanBePointedAt) {
  for (const Chart& chart : make_charts(example_rows())) {
    if (chart.name.find("heat") == std::string::npos) continue;
    EXPECT_EQ(chart.spec["encoding"]["tooltip"].size(), 3u);
    for (const Json& layer : chart.spec["layer"]) EXPECT_FALSE(layer["mark"].contains("tooltip"));
  }
}

}  // namespace
}  // namespace qact::report
