#include "qact/report/comparisons.h"

#include <gtest/gtest.h>

#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

// The names of the comparisons, each with its number of curves.
std::vector<std::string> names_of(const results::Rows& rows) {
  std::vector<std::string> names;
  const Group group = groups(rows)[0];
  for (const Comparison& each : comparisons(group)) {
    names.push_back(each.name + std::to_string(each.curves.size()));
  }
  return names;
}

results::Rows with(results::Rows rows, const char* field, const char* value) {
  for (results::Row& row : rows) row[field] = value;
  return rows;
}

TEST(Comparisons, OfAStreamStandAlone) {
  const results::Rows plain = example_rows(), tent = with(plain, "adapt", "tent");
  const results::Rows mixed = with(plain, "stream", "mixed");
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(plain), (Names{"2"}));
  EXPECT_EQ(names_of(joined(plain, tent)), (Names{"2", "adaptation_4"}));
  EXPECT_EQ(names_of(joined(plain, mixed)), (Names{"2", "mixed_2"}));
  EXPECT_EQ(names_of(mixed), (Names{"mixed_2"}));  // no heading without curves
  EXPECT_EQ(names_of(joined(with(tent, "stream", "correlated"), mixed)),
            (Names{"mixed_2", "correlated_2"}));
}

// Curves in other batches would crowd the first chart.
TEST(Comparisons, OfOtherBatchesStandAlone) {
  const auto in_batches = [](int64_t size, const char* adapt) {
    results::Rows rows = {score_row("qact", "batch", "fog", 1, 0.5),
                          score_row("relu", "batch", "fog", 1, 0.4)};
    for (results::Row& row : rows) row["batch_size"] = size, row["adapt"] = adapt;
    return rows;
  };
  results::Rows rows = example_rows();  // in batches of 500, also clean images
  for (const int64_t size : {16, 1000}) rows = joined(rows, in_batches(size, "none"));
  rows = joined(rows, in_batches(16, "tent"));
  EXPECT_EQ(names_of(rows), (std::vector<std::string>{"2", "batches_of_1000_2", "batches_of_16_2",
                                                      "adaptation_4"}));
}

}  // namespace
}  // namespace qact::report
