// The context as a value: built, added, blended.
#include "qact/core/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "qact/core/reference.h"
#include "tests/core/cases.h"

namespace qact::core::testing {
namespace {

Context build(Tensor& x) {
  Context out(x.shape().channels);
  context_build({x.shape(), x.view(), {}, {}, out.data()}, threads(2));
  return out;
}

Context of_values(const std::vector<double>& values) {
  Tensor x({static_cast<int64_t>(values.size()), 1, 1}, DType::f64);
  x.set(0, values);
  return build(x);
}

// By definition: equal values side by side, and ties apart.
std::vector<int64_t> counted(std::vector<double> values) {
  std::vector<int64_t> row(kContextBins, 0);
  std::ranges::sort(values);
  const auto negatives = std::ranges::count_if(values, [](double v) { return v < 0; });
  for (auto from = values.begin(); from != values.end();) {
    const auto to = std::upper_bound(from, values.end(), *from);
    const auto count = to - from;
    const auto of_their_sign = *from < 0 ? negatives : std::ssize(values) - negatives;
    const bool tie = count >= 8 && count >= static_cast<double>(of_their_sign) / 64;
    const auto z = static_cast<float>(*from);
    row[tie ? context_tie_bin(z) : context_bin(z)] += count * kContextUnit;
    from = to;
  }
  return row;
}

int64_t units(const Context& context, int64_t channel = 0) {
  const auto row = context.row(channel);
  return std::accumulate(row.begin(), row.end(), int64_t{0});
}

TEST(Context, HasBinsThatMeetAndHoldTheirEdges) {
  for (int b = 0; b < kContextBins; ++b) {
    const float low = context_edge(b), high = context_edge(b + 1);
    ASSERT_LT(low, high);
    const float inside = std::isfinite(low) ? low : std::nextafter(high, low);
    // A bin below 0 holds its upper edge's neighbour, not its lower edge.
    EXPECT_TRUE(low < 0 || context_bin(inside) == b);
    const float middle = std::isfinite(low) && std::isfinite(high) ? 0.5f * (low + high) : inside;
    EXPECT_EQ(context_bin(middle), b);
  }
  EXPECT_EQ(context_bin(0.0f), kContextBins / 2);
  EXPECT_EQ(context_bin(-0.0f), kContextBins / 2);
  EXPECT_EQ(context_bin(-1e-30f), kContextBins / 2 - 1);
  EXPECT_EQ(context_bin(std::numeric_limits<float>::infinity()), kContextBins - 1);
  EXPECT_EQ(context_bin(-std::numeric_limits<float>::infinity()), 0);
}

TEST(Context, CountsEveryValueOfAnyLayout) {
  for (const Shape& shape : kShapes) {
    for (const Layout layout : kLayouts) {
      for (const DType dtype : kDTypes) {
        for (const Distribution distribution :
             {Distribution::normal, Distribution::ties, Distribution::constant}) {
          Tensor x = filled(shape, distribution, 131, dtype, layout);
          const Context context = build(x);
          for (int64_t c = 0; c < shape.channels; ++c) {
            ASSERT_TRUE(std::ranges::equal(context.row(c), counted(x.get(c))))
                << name(distribution) << shape.context_size();
            ASSERT_EQ(context.size(c), static_cast<double>(shape.context_size()));
          }
        }
      }
    }
  }
}

TEST(Context, CountsATieBelowItsBin) {
  for (int b = 1; b < kContextBins; ++b) {
    const float low = std::max(context_edge(b), -1e9f), high = std::min(context_edge(b + 1), 1e9f);
    for (const float share : {0.01f, 0.5f, 0.99f}) {
      const float z = low + share * (high - low);
      const int tie = context_tie_bin(z), own = context_bin(z);
      if (b == kContextBins / 2) {
        EXPECT_EQ(tie, own);  // below it values have the other sign
        continue;
      }
      EXPECT_LT(tie, own) << z;
      EXPECT_EQ(tie >= kContextBins / 2, z >= 0) << z;
      // Where the value comes out a little lower, it is still above the whole tie.
      const float lower = z - std::max(std::abs(z), 1.0f) / 33;
      if (z < 200 && lower > (z < 0 ? -200 : 0x1.0p-8f)) {
        EXPECT_LE(context_edge(tie + 1), lower) << z;
        EXPECT_GE(context_edge(tie + 1), lower - 0.15f * std::abs(lower) - 0.002f) << z;
      }
    }
  }
  EXPECT_EQ(context_tie_bin(0.0f), context_bin(0.0f));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(context_tie_bin(infinity), kContextBins - 1);
  EXPECT_EQ(context_tie_bin(-infinity), 0);
}

// A constant background, a little off its place in training: it has the level above all of itself,
// as it had in the batch.
TEST(Context, RanksATieAboveItself) {
  for (const double background : {-1.7, -0.42, -0.012, 0.0, 0.001, 0.1, 0.9}) {
    auto values = draw(Distribution::normal, 3000, 7);
    for (int i = 0; i < 9000; ++i) values.push_back(background);
    const Context context = of_values(values);
    std::vector<double> q(100);
    context_quantiles(context.row(0), {}, q.data());
    const reference::Neuron neuron(values, {});
    const auto exact = reference::quantiles(neuron, 100);
    const auto level = [](const std::vector<double>& at, double z) {
      return std::upper_bound(at.begin(), at.end(), z) - at.begin();
    };
    for (const double off : {-0.02, 0.0, 0.01}) {
      if ((background < 0) != (background + off < 0)) continue;
      EXPECT_NEAR(level(q, background + off), level(exact, background), 2)
          << background << " " << off;
    }
  }
}

TEST(Context, NeverHoldsNan) {
  const Context context = of_values({1, std::nan(""), 2, std::nan("")});
  EXPECT_EQ(context, of_values({1, 2}));
  EXPECT_EQ(of_values({std::nan("")}), Context(1));
}

TEST(Context, TakesTwoKilobytesHoweverManyValuesItHolds) {
  const Context few = of_values({1}), many = of_values(draw(Distribution::normal, 5000, 1));
  EXPECT_EQ(few.row(0).size_bytes(), 2048u);
  EXPECT_EQ(many.row(0).size_bytes(), 2048u);
}

TEST(Context, AddsExactly) {
  auto a = draw(Distribution::normal, 700, 1), b = draw(Distribution::heavy_tailed, 300, 2);
  for (auto* values : {&a, &b}) {  // the first bin and the last, too
    for (const double v : {-1e30, -300.0, 300.0, 1e30}) values->push_back(v);
  }
  auto both = a;
  both.insert(both.end(), b.begin(), b.end());
  Context sum = of_values(a);
  sum += of_values(b);
  EXPECT_EQ(sum, of_values(both));
  EXPECT_THROW(sum += Context(2), std::invalid_argument);
}

TEST(Context, RefusesToOverflow) {
  Context full(1), one = of_values({1.0});
  full.row(0)[context_bin(1.0f)] = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(full += one, std::overflow_error);
}

TEST(Context, BlendsInFixedPointWithAnExactTotal) {
  auto of_a = draw(Distribution::normal, 773, 3), of_b = draw(Distribution::uniform, 129, 4);
  for (const double v : {-1e30, -300.0, 300.0, 1e30}) of_a.push_back(v);
  for (const double v : {-1e30, 1e30}) of_b.push_back(v);
  const Context a = of_values(of_a), b = of_values(of_b);
  for (const double share : {0.0, 0.1, 0.37, 1.0}) {
    const Context blended = Context::blend(a, 1000 * (1 - share), b, 1000 * share);
    EXPECT_EQ(units(blended), 1000 * kContextUnit) << share;
    for (int bin = 0; bin < kContextBins; ++bin) {
      const double expected = kContextUnit * 1000.0 *
                              ((1 - share) * static_cast<double>(a.row(0)[bin]) / units(a) +
                               share * static_cast<double>(b.row(0)[bin]) / units(b));
      ASSERT_NEAR(static_cast<double>(blended.row(0)[bin]), expected, 3);
      ASSERT_GE(blended.row(0)[bin], 0);
    }
  }
  // Its own blend with itself at its own size is itself.
  EXPECT_EQ(Context::blend(a, 777, b, 0), a);
}

// Many channels at once, in place, are blended as row by row: short totals and long, and none.
TEST(Context, BlendsManyChannelsAsItBlendsOne) {
  const Distribution kinds[] = {Distribution::normal, Distribution::ties, Distribution::constant};
  Context a(12), b(12);
  for (int64_t c = 0; c < 12; ++c) {
    if (c == 5 || c == 7) continue;
    const Context values = of_values(draw(kinds[c % 3], 100 + 50 * c, c));
    std::ranges::copy(values.row(0), a.row(c).begin());
    std::ranges::copy(of_values(draw(kinds[c % 2], 900, 50 + c)).row(0), b.row(c).begin());
    for (int64_t& count : a.row(c)) count = c == 8 ? count << 20 : count - count % (c + 1);
  }
  std::ranges::fill(b.row(3), 0);
  for (const Simd simd : simd_levels()) {
    for (const auto& [a_values, b_values] : {std::pair{0.9 * 1024, 0.1 * 1024}, {0.0, 1e9}}) {
      Context blended = a;
      context_blend({12, blended.data(), a_values, b.data(), b_values, blended.data()},
                    threads(2, simd));
      EXPECT_EQ(blended, Context::blend(a, a_values, b, b_values));
    }
  }
}

TEST(Context, CedesTheWeightOfAnEmptyOne) {
  const Context a = of_values({1, 2, 3});
  EXPECT_EQ(units(Context::blend(a, 10, Context(1), 90)), 100 * kContextUnit);
  EXPECT_EQ(units(Context::blend(Context(1), 10, a, 90)), 100 * kContextUnit);
  EXPECT_EQ(Context::blend(Context(1), 10, Context(1), 90), Context(1));
}

TEST(Context, RefusesToBlendByImpossibleWeights) {
  const Context a = of_values({1});
  for (const double bad : {-1.0, std::nan(""), 1e300}) {
    EXPECT_THROW(Context::blend(a, bad, a, 1), std::invalid_argument);
    EXPECT_THROW(Context::blend(a, 1, a, bad), std::invalid_argument);
  }
  EXPECT_THROW(Context::blend(a, 1, Context(3), 1), std::invalid_argument);
}

// A tiny last batch: a context whose effective sample count has a floor still looks like what it
// has seen.
TEST(Context, KeepsItsEffectiveCountWhenFedByTinyBatches) {
  Context running = of_values(draw(Distribution::normal, 4096, 5));
  const Quantile quantile;
  std::vector<double> before(100), after(100);
  context_quantiles(running.row(0), quantile, before.data());
  const Context tiny = of_values({0.3, -0.2});
  const double count = std::max(2.0, kMinContextCount);
  running = Context::blend(running, 0.9 * count, tiny, 0.1 * count);
  context_quantiles(running.row(0), quantile, after.data());
  EXPECT_GE(running.size(0), kMinContextCount);
  for (int j = 0; j < 100; ++j) EXPECT_NEAR(after[j], before[j], 0.6) << j;
}

TEST(Context, StartsAsAStandardNormal) {
  Context context(1);
  context_standard_normal(context.row(0));
  EXPECT_EQ(context.size(0), kMinContextCount);
  std::vector<double> q(100);
  context_quantiles(context.row(0), {}, q.data());
  for (int j = 1; j < 99; ++j) {
    const double expected = (j + 1) / 101.0;
    EXPECT_NEAR(0.5 * std::erfc(-q[j] / std::sqrt(2.0)), expected, 0.004) << j;
  }
}

TEST(Context, HasQuantilesNearTheOracle) {
  for (const Distribution distribution : kDistributions) {
    const auto values = draw(distribution, 3000, 6);
    const Context context = of_values(values);
    std::vector<double> q(100);
    context_quantiles(context.row(0), {}, q.data());
    EXPECT_TRUE(std::is_sorted(q.begin(), q.end()));
    // Within a bin, an eighth of an octave, of the true quantile or of its neighbours: in a
    // gap between values, interpolation is all there is. Ties lie lower.
    const auto expected = reference::quantiles(reference::Neuron(values, {}), 100);
    const auto bin = [&](int j) {
      return context_bin(static_cast<float>(expected[std::clamp(j, 0, 99)]));
    };
    for (int j = 0; j < 100; ++j) {
      const int found = context_bin(static_cast<float>(q[j]));
      ASSERT_TRUE(found >= bin(j - 1) - 3 && found <= bin(j + 1) + 1)
          << name(distribution) << ", q_" << j + 1 << " = " << expected[j] << ", found " << q[j];
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
