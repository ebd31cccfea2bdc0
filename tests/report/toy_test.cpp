#include "qact/report/toy.h"

#include <gtest/gtest.h>

namespace qact::report {
namespace {

using results::ToyScore;

ToyScore example_score(std::vector<int64_t> correct, int64_t seed = 0) {
  return {.experiment = "circle",
          .network = "qact",
          .label = "QAct",
          .seed = seed,
          .batch_size = 100,
          .bayes = 0.9952,
          .correct = std::move(correct)};
}

TEST(ToyHistograms, CountEveryContextOnce) {
  // On both sides of an edge, on the last edge, and in two seeds.
  const Chart chart =
      toy_histograms("name", {example_score({100, 99, 98}, 0), example_score({97, 0, 50}, 1)});
  double share = 0;
  std::vector<std::pair<double, int>> counts;
  for (const auto& value : chart.spec["data"]["values"]) {
    share += value["share"].get<double>();
    counts.emplace_back(value["from"], value["contexts"]);
  }
  EXPECT_DOUBLE_EQ(share, 1.0);
  const std::vector<std::pair<double, int>> expected = {{0.0, 1}, {0.5, 1}, {0.96, 1}, {0.98, 3}};
  EXPECT_EQ(counts, expected);
}

TEST(ToyTable, RoundsAndMarksWhatOneSeedCannotTell) {
  const Table table = toy_table(results::summarise_toy({example_score({99, 90})}));
  const std::vector<std::string> expected = {"QAct", "0.9450", "-", "0.9000", "0.9952"};
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0], expected);
  EXPECT_EQ(table.columns.size(), expected.size());
}

TEST(ToyTable, NamesTheExperimentWhereThereAreSeveral) {
  ToyScore other = example_score({99, 90});
  other.experiment = "monotone";
  const Table table = toy_table(results::summarise_toy({example_score({100}), other}));
  EXPECT_EQ(table.columns[0].title, "experiment");
  EXPECT_EQ(table.rows[1][0], "monotone");
  EXPECT_EQ(table.rows[1].size(), table.columns.size());
}

}  // namespace
}  // namespace qact::report
