#include "qact/eval/histogram.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "qact/core/context.h"
#include "qact/ops/context.h"

namespace qact::eval {
namespace {

double total(const Histogram& h) {
  return std::accumulate(h.counts.begin(), h.counts.end(), h.below + h.above);
}

TEST(Histogram, CountsEveryValueOnce) {
  const torch::Tensor values = torch::tensor({-2.0f, -1.0f, 0.0f, 0.999f, 1.0f, 1.5f});
  const Histogram h = histogram(values, -1, 1);
  EXPECT_EQ(h.below, 1);
  EXPECT_EQ(h.above, 1);
  EXPECT_EQ(h.counts.front(), 1);
  EXPECT_EQ(h.counts[kHistogramBins / 2], 1);
  EXPECT_EQ(h.counts.back(), 2);
  EXPECT_EQ(total(h), 6);
}

// Nearly the histogram of the values that the context was built from, and none are lost.
TEST(ContextHistogram, HasEqualBins) {
  torch::manual_seed(2);
  const torch::Tensor x = torch::randn({20000, 1});
  const Histogram found = context_histogram(ops::context_build(x)[0], -4, 4);
  const Histogram plain = histogram(x.flatten(), -4, 4);
  EXPECT_NEAR(total(found), 20000, 1);
  for (int b = 0; b < kHistogramBins; ++b) {
    EXPECT_NEAR(found.counts[b], plain.counts[b], 0.1 * plain.counts[b] + 120) << b;
  }
}

TEST(ContextRange, IsWhereTheValuesAre) {
  torch::manual_seed(2);
  const torch::Tensor counts = ops::context_build(0.1 * torch::randn({20000, 1}) + 0.2)[0];
  const auto [low, high] = context_range(counts);
  int edges = 0;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    edges += low == core::context_edge(bin) || high == core::context_edge(bin);
  }
  EXPECT_EQ(edges, 2);
  EXPECT_NEAR(low, 0.2 - 3.1 * 0.1, 0.03);
  EXPECT_NEAR(high, 0.2 + 3.1 * 0.1, 0.06);
  const Histogram h = context_histogram(counts, low, high);
  EXPECT_LE(h.below + h.above, 0.002 * total(h));

  // Values in the outermost bins, which reach to infinity, and no values.
  for (const torch::Tensor& few : {ops::context_build(torch::full({4, 1}, 1e9))[0],
                                   torch::zeros(core::kContextBins, torch::kLong)}) {
    const auto [from, to] = context_range(few);
    EXPECT_TRUE(std::isfinite(from) && std::isfinite(to) && from < to) << from << " " << to;
  }
}

}  // namespace
}  // namespace qact::eval
