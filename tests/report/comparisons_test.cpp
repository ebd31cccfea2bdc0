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

}  // namespace
}  // namespace qact::report
