#include "qact/report/csv.h"

#include <gtest/gtest.h>

namespace qact::report {
namespace {

TEST(Csv, QuotesAndFlattens) {
  EXPECT_EQ(csv_of({{"data", {{"values", {{{"a", 1}, {"b", "x,\"y\""}}, {{"c", nullptr}}}}}}}),
            "a,b,c\n1,\"x,\"\"y\"\"\",\n,,\n");
  EXPECT_EQ(csv_of({{"data", {{"values", {{{"x", {1, 2}}, {"y", {3, 4}}}}}}}}), "x,y\n1,3\n2,4\n");
  EXPECT_EQ(csv_of({{"layer", {{{"data", {{"values", {{{"a", 1}}}}}}}}}}), "a\n1\n");
  EXPECT_EQ(csv_of(nlohmann::ordered_json::object()), "\n");
}

}  // namespace
}  // namespace qact::report
