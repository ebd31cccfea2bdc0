// The fused layer over a batch in several parts: the parts change no bit of the forward pass, and
// what comes out is held to the oracle as one process is.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "qact/core/cpu/dispatch.h"
#include "tests/core/world_cases.h"

namespace qact::core::testing {
namespace {

TEST(World, PartsChangeNoBit) {
  // Gathered whole, one to a word, two to a word, and longer than one tile.
  for (const Shape& shape :
       {Shape{6, 3, 5}, Shape{6, 5, 49}, Shape{6, 4, 1000}, Shape{6, 2, 5500}}) {
    for (const Distribution distribution : kDistributions) {
      for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
        SCOPED_TRACE(std::string(name(distribution)) + " " + name(layout) + " of " +
                     std::to_string(shape.context_size()));
        World given(shape, distribution, DType::f32, layout);
        expect_splits(given, kSplitsOf6);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(World, PartsChangeNoBitInAnyTypeLayoutOrAlgorithm) {
  for (const DType dtype : kDTypes) {
    for (const Layout layout : kLayouts) {
      for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
        for (const Distribution distribution :
             {Distribution::normal, Distribution::ties, Distribution::beyond_bound}) {
          SCOPED_TRACE(std::string(name(dtype)) + " " + name(layout) + " " + name(distribution));
          World given({6, 3, 301}, distribution, dtype, layout, with(algorithm));
          expect_splits(given, {{2, 4}, {1, 0, 3, 2}});
          if (HasFailure()) return;
        }
      }
    }
  }
}

// 65,536 values and more do not fit two to a word.
TEST(World, PartsChangeNoBitOfLongContexts) {
  for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
    World given({6, 1, 11000}, distribution);
    expect_splits(given, {{1, 2, 3}});
  }
}

TEST(World, PartsChangeNoBitOfAnyMagnitude) {
  for (const DType dtype : kDTypes) {
    World given = of_all_magnitudes({6, 3, 301}, dtype, Layout::contiguous);
    expect_splits(given, kSplitsOf6);
  }
}

TEST(World, ThreadsAndSimdChangeNoBit) {
  for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
    World given({6, 19, 300}, Distribution::ties, DType::f32, layout);
    const WorldRun plain = given.run({1, 5}, on_cpu({}));
    for (const Simd simd : simd_levels()) {
      for (const int count : {1, 3}) {
        SCOPED_TRACE(std::string(cpu::name(simd)) + ", " + std::to_string(count) + " threads");
        const WorldRun run = given.run({1, 5}, on_cpu(threads(count, simd)));
        expect_same_bits(run, plain);
        EXPECT_TRUE(run.grad_x == plain.grad_x);
      }
    }
  }
}

// By bins; what is ranked exactly equals one process, below.
TEST(World, IsTheOracles) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Distribution distribution : kDistributions) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + name(distribution));
      World given({5, 3, 260}, distribution, dtype);
      const WorldRun run = given.run({2, 0, 3});
      for (int64_t c = 0; c < 3; ++c) {
        const LayerCase oracle{given.x.get(c), given.grad_y.get(c), given.affines.of(c), dtype,
                               /*exact=*/false};
        expect_levels(oracle, found(run, c));
        expect_norms(oracle, found(run, c));
        expect_gradient(oracle, found(run, c));
      }
      if (HasFailure()) return;
    }
  }
}

// As Layer.CountsEveryValueWhereALevelBeginsExactlyAtOne.
TEST(World, CountsEveryValueWhereALevelBeginsExactlyAtOne) {
  Quantile quantile;
  quantile.levels = 127;
  World given({21, 24, 49}, Distribution::normal, DType::f32, Layout::channels_last, quantile);
  for (int c = 0; c < 24; ++c) {
    given.affines.weight_in[c] = c % 2 ? -0.25f : 0.25f;
    given.affines.bias_in[c] = 0.3f;
  }
  const WorldRun run = given.run({10, 0, 11});
  for (int64_t c = 0; c < 24; ++c) {
    SCOPED_TRACE(c);
    LayerCase oracle{given.x.get(c), given.grad_y.get(c), given.affines.of(c), DType::f32,
                     /*exact=*/false};
    oracle.parameters.quantile.levels = quantile.levels;
    expect_levels(oracle, found(run, c));
    expect_norms(oracle, found(run, c));
  }
}

// Short contexts and those that are ranked exactly are gathered, and then ranked as one process
// does it.
TEST(World, GatheredContextsAreOneProcesss) {
  for (const DType dtype : kDTypes) {
    for (const auto& [shape, algorithm] : {std::pair{Shape{6, 5, 40}, Algorithm::automatic},
                                           std::pair{Shape{6, 5, 170}, Algorithm::binned},
                                           std::pair{Shape{6, 3, 900}, Algorithm::exact}}) {
      for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
        World given(shape, distribution, dtype, Layout::contiguous, with(algorithm));
        const LayerRun alone = given.alone();
        const WorldRun run = given.run({1, 0, 3, 2});
        EXPECT_TRUE(run.y == alone.y);
        EXPECT_TRUE(same(run.level, alone.level));
        EXPECT_TRUE(same(run.stats, alone.stats));
        EXPECT_TRUE(same(run.context, alone.context));
        if (HasFailure()) return;
      }
    }
  }
}

// Longer ones differ from one process in the last bits of mean and variance: in float64 that moves
// no value over the edge of a bin.
TEST(World, EqualsOneProcessInDouble) {
  for (const Distribution distribution : {Distribution::normal, Distribution::ties,
                                          Distribution::positive, Distribution::beyond_bound}) {
    SCOPED_TRACE(name(distribution));
    World given({6, 5, 700}, distribution, DType::f64);
    const LayerRun alone = given.alone();
    const WorldRun run = given.run({1, 0, 3, 2});
    EXPECT_TRUE(same(run.level, alone.level));
    EXPECT_TRUE(same(run.context, alone.context));
    for (int64_t c = 0; c < 5; ++c) {
      expect_near(run.y.get(c), alone.y.get(c), 1e-12);
      expect_near(run.grad_x.get(c), alone.grad_x.get(c), 1e-10);
    }
    expect_near(run.grad_affine, alone.grad_affine, 1e-10);
  }
}

// More than 2^15 values in one bin, two counts to a word.
TEST(World, CountsALongTie) {
  World given({6, 1, 5500}, Distribution::constant);
  EXPECT_TRUE(given.run({2, 4}).y == given.alone().y);
}

TEST(World, ANaNOnOneRankIsTheChannelsOnAll) {
  for (const int64_t spatial : {7, 500}) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      World given({6, 3, spatial}, Distribution::normal);
      const WorldRun sound = given.run({2, 4});
      std::vector<double> values = given.x.get(1);
      values[5 * spatial] = bad;
      given.x.set(1, values);
      const WorldRun run = given.run({2, 4});
      ASSERT_TRUE(run.alike);
      for (const double v : run.y.get(1)) EXPECT_TRUE(std::isnan(v));
      for (const double v : run.grad_x.get(1)) EXPECT_TRUE(std::isnan(v));
      EXPECT_EQ(run.y.get(0), sound.y.get(0));
      EXPECT_EQ(run.y.get(2), sound.y.get(2));
    }
  }
}

TEST(World, TakesTwoRoundsWhereNoBinIsHeavy) {
  World given({8, 4, 4000}, Distribution::normal);
  const WorldRun run = given.run({4, 4});
  EXPECT_EQ(run.rounds, 2);
  // Extremes, moments, 2,048 bins and some in 16 bits.
  EXPECT_LE(run.bytes, 4 * (16 + 232 + 2 * 2100) + 16);
}

TEST(World, RefusesASingleValue) {
  World given({1, 2, 1}, Distribution::normal);
  EXPECT_THROW(given.run({1, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace qact::core::testing
