#include "qact/losses/balanced_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace qact::losses {
namespace {

TEST(BalancedOrder, FillsEachBatchWithDistinctSamplesOfDistinctClasses) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 230; ++i) labels.push_back(10 * (i % 7 == 6 ? 0 : i % 7));
  const auto order = balanced_order(labels, 4, 5, {42, 0});
  ASSERT_EQ(order.size(), 230u / 20 * 20);
  for (size_t batch = 0; batch < order.size(); batch += 20) {
    const std::set<int64_t> samples(order.begin() + batch, order.begin() + batch + 20);
    EXPECT_EQ(samples.size(), 20u);
    std::map<int64_t, int> counts;
    for (const int64_t i : samples) ++counts[labels.at(i)];
    EXPECT_EQ(counts.size(), 4u);
    for (const auto& [label, count] : counts) EXPECT_EQ(count, 5) << label;
  }
  EXPECT_EQ(order, balanced_order(labels, 4, 5, {42, 0}));
  EXPECT_NE(order, balanced_order(labels, 4, 5, {43, 0}));
}

TEST(BalancedOrder, UsesEverySampleOnceWhereTheNumbersAllowIt) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 60; ++i) labels.push_back(i % 3);
  auto order = balanced_order(labels, 3, 10, {7, 0});
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(order.at(i), i);
}

TEST(BalancedOrder, RefusesWhatCannotBeFilled) {
  const std::vector<int64_t> labels = {0, 0, 1, 1, 1};
  EXPECT_THROW(balanced_order(labels, 3, 1, {0, 0}), std::invalid_argument);
  EXPECT_THROW(balanced_order(labels, 2, 3, {0, 0}), std::invalid_argument);
  EXPECT_THROW(balanced_order(labels, 0, 1, {0, 0}), std::invalid_argument);
  EXPECT_EQ(balanced_order(labels, 2, 2, {0, 0}).size(), 4u);
}

}  // namespace
}  // namespace qact::losses
