// Every path through the fused layer's kernels: that a shape takes it, that it agrees with the
// oracle, and that its bits do not depend on the order in which threads run.
#include "tests/core/cuda/paths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qact::core::testing {
namespace {

Given::Values drawn(Distribution distribution) {
  return [=](int64_t n, int64_t c) { return draw(distribution, n, 500 + c); };
}

TEST(CudaPaths, EqualTheOracle) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Path& path : paths(dtype)) {
      // What occupies a whole device takes long, and is the same in both types of 16 bits.
      if (dtype == DType::f16 && path.shape.channels >= 24) continue;
      SCOPED_TRACE(std::string(path.name) + " " + name(dtype));
      Given given(path, dtype, drawn(Distribution::normal));
      const std::vector<int64_t> ends = {0, path.shape.channels - 1};
      expect_oracle(path, dtype, given, ends, ends);
    }
  }
}

// Contexts of images and of groups of them. Codes lie as a set's do.
TEST(CudaPaths, EqualTheOracleOnSetsOfContexts) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Path& path : paths_of_sets(dtype)) {
      SCOPED_TRACE(std::string(path.name) + " " + name(dtype));
      Given given(path, dtype, drawn(Distribution::normal));
      const int64_t last = path.contexts() - 1;
      expect_oracle(path, dtype, given, {0, path.shape.channels, last},
                    {path.shape.channels, last});
    }
  }
}

// Channels that several blocks count, whose counts of 16 bits could not hold them whole.
TEST(CudaPaths, EqualTheOracleOnVeryLongChannels) {
  for (const Path& path : paths(DType::f32)) {
    const std::string name = path.name;
    if (name != "passes over long rows" && name != "passes over long columns") continue;
    SCOPED_TRACE(name);
    Path longer = path;
    longer.shape = {30, 2, 9000};
    Given given(longer, DType::f32, drawn(Distribution::bimodal));
    expect_oracle(longer, DType::f32, given, {0, 1}, {1});
  }
}

// Values that make kernels branch: ties in few bins and in many, tails that no bins serve, sums
// that must be taken again. Every channel has one kind of them.
struct Kind {
  const char* name;
  Given::Values values;
  bool gradient;  // is within what the density by value promises, however few places it is at
};

std::vector<double> changed(std::vector<double> values,
                            const std::function<void(size_t, double&)>& change) {
  for (size_t i = 0; i < values.size(); ++i) change(i, values[i]);
  return values;
}

std::vector<Kind> kinds() {
  const auto of_normal = [](const std::function<void(size_t, double&)>& change) {
    return [=](int64_t n, int64_t c) {
      return changed(draw(Distribution::normal, n, 600 + c), change);
    };
  };
  const auto few_ties = [](size_t i, double& v) { v = i % 16 == 3 && i < 4000 ? 0.7 : v; };
  return {
      {"normal", drawn(Distribution::normal), true},
      {"a few ties", of_normal(few_ties), true},
      {"ties", drawn(Distribution::ties), true},
      {"rectified", of_normal([](size_t, double& v) { v = std::max(v, 0.0); }), false},
      {"constant", drawn(Distribution::constant), false},
      {"heavy tails", drawn(Distribution::heavy_tailed), false},
      {"beyond the bound", drawn(Distribution::beyond_bound), true},
      {"far from 0", drawn(Distribution::far_mean), true},
      {"positive", drawn(Distribution::positive), true},
      {"an outlier first", of_normal([](size_t i, double& v) { v = i == 0 ? 1e3 : 1e-3 * v; }),
       false},
      {"huge", of_normal([](size_t, double& v) { v *= 1e19; }), false},
      {"beyond huge", of_normal([](size_t, double& v) { v *= 1e30; }), false},
  };
}
constexpr int64_t kKinds = 12;

Given::Values every_kind(int64_t first) {
  return [first, all = kinds()](int64_t n, int64_t c) {
    return all[(c + first) % kKinds].values(n, c);
  };
}

TEST(CudaPaths, EqualTheOracleOnAwkwardValues) {
  std::vector<int64_t> channels, gradients;
  for (const Path& path : short_list(DType::f32, kKinds)) {
    SCOPED_TRACE(path.name);
    channels.clear(), gradients.clear();
    for (int64_t c = 0; c < kKinds; ++c) {
      channels.push_back(c);
      if (kinds()[c].gradient) gradients.push_back(c);
    }
    Given given(path, DType::f32, every_kind(0));
    expect_oracle(path, DType::f32, given, channels, gradients);
  }
}

// A weight of 0 makes all values one; a large one spreads them beyond the bound and all bins.
TEST(CudaPaths, EqualTheOracleForAwkwardWeights) {
  for (const Path& path : short_list(DType::f32, 4)) {
    SCOPED_TRACE(path.name);
    Given given(path, DType::f32, drawn(Distribution::normal));
    const float weights[] = {0, 300, -300, 0};
    for (int c = 0; c < 4; ++c) given.affines.weight_in[c] = weights[c];
    given.affines.bias_in[3] = -150;
    expect_oracle(path, DType::f32, given, {0, 1, 2, 3}, {});
  }
}

TEST(CudaPaths, HaveTheSameBitsInEverySchedule) {
  for (Path path : paths(DType::f32)) {
    SCOPED_TRACE(path.name);
    path.shape.channels = std::max(path.shape.channels, kKinds);
    Given given(path, DType::f32, every_kind(5));
    expect_same_bits(path, given);
  }
}

// A channel that holds one is NaN, and no other channel changes by a bit.
TEST(CudaPaths, GiveNanForAChannelThatHoldsOne) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Path& path : short_list(DType::f32, 4)) {
    SCOPED_TRACE(path.name);
    Given clean(path, DType::f32, drawn(Distribution::normal)), given = clean;
    int64_t bad = 0;
    for (const double value : {std::nan(""), infinity, -infinity}) {
      given.x.set(bad,
                  changed(given.x.get(bad), [&](size_t i, double& v) { v = i == 7 ? value : v; }));
      ++bad;
    }
    const CudaLayerRun run(given.x, given.grad_y, given.affines, path.quantile);
    const CudaLayerRun spared(clean.x, clean.grad_y, clean.affines, path.quantile);
    for (int64_t c = 0; c < path.shape.channels; ++c) {
      if (c >= bad) {
        ASSERT_EQ(run.y.get(c), spared.y.get(c));
        ASSERT_EQ(run.grad_x.get(c), spared.grad_x.get(c));
        continue;
      }
      for (const double v : run.y.get(c)) ASSERT_TRUE(std::isnan(v));
      for (const double v : run.grad_x.get(c)) ASSERT_TRUE(std::isnan(v));
      for (int b = 0; b < kContextBins; ++b) ASSERT_EQ(run.context[c * kContextBins + b], 0);
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
