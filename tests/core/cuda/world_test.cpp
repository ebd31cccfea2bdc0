// The layer over several ranks on the emulated device: the same codes, tables, statistics and
// contexts as on the CPU, to the last bit, however the images are spread and threads are ordered.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/cuda/world_run.h"
#include "tests/core/world_cases.h"

namespace qact::core::testing {
namespace {

constexpr DType kCudaTypes[] = {DType::f32, DType::bf16, DType::f16};

// y is rounded once more than codes are; sums have another order.
void expect_cpus(World& given, const Split& split) {
  const WorldRun cpu = given.run(split), cuda = given.run(split, on_cuda());
  ASSERT_TRUE(cuda.alike && cuda.y.intact() && cuda.grad_x.intact());
  EXPECT_EQ(cuda.rounds, cpu.rounds);
  EXPECT_EQ(cuda.bytes, cpu.bytes);
  expect_same_bits(cuda, cpu);
  for (int64_t c = 0; c < given.x.shape().channels; ++c) {
    expect_near(cuda.grad_x.get(c), cpu.grad_x.get(c), 2e-4 + 2 * tolerance::stored(given.dtype));
  }
  expect_near(cuda.grad_affine, cpu.grad_affine, 1e-6);
}

TEST(CudaWorld, EqualsTheCpu) {
  // Gathered whole; binned, one and two counts to a word; and more than one block of a channel.
  for (const Shape& shape : {Shape{6, 3, 5}, Shape{6, 35, 60}, Shape{6, 2, 1300}}) {
    for (const Distribution distribution : kDistributions) {
      for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
        SCOPED_TRACE(std::string(name(distribution)) + " " + name(layout) + " of " +
                     std::to_string(shape.context_size()));
        World given(shape, distribution, DType::f32, layout);
        expect_cpus(given, {1, 0, 3, 2});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(CudaWorld, EqualsTheCpuInAnyTypeLayoutOrAlgorithm) {
  for (const DType dtype : kCudaTypes) {
    for (const Layout layout : kLayouts) {
      for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
        for (const Distribution distribution :
             {Distribution::normal, Distribution::ties, Distribution::beyond_bound}) {
          SCOPED_TRACE(std::string(name(dtype)) + " " + name(layout) + " " + name(distribution));
          World given({6, 3, 201}, distribution, dtype, layout, with(algorithm));
          expect_cpus(given, {2, 4});
          if (HasFailure()) return;
        }
      }
    }
  }
}

// 65,536 values and more do not fit two to a word.
TEST(CudaWorld, EqualsTheCpuOnLongContexts) {
  for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
    World given({6, 1, 11000}, distribution);
    expect_cpus(given, {1, 5});
  }
}

TEST(CudaWorld, EqualsTheCpuOnAnyMagnitude) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      World given = of_all_magnitudes({6, 3, 301}, dtype, layout);
      expect_cpus(given, {2, 0, 4});
    }
  }
}

TEST(CudaWorld, PartsChangeNoBit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
        World given({6, 3, 400}, distribution, dtype, layout);
        expect_splits(given, kSplitsOf6, on_cuda());
        if (HasFailure()) return;
      }
    }
  }
}

TEST(CudaWorld, IsTheOracles) {
  for (const Distribution distribution : kDistributions) {
    SCOPED_TRACE(name(distribution));
    World given({5, 3, 260}, distribution);
    const WorldRun run = given.run({2, 0, 3}, on_cuda());
    for (int64_t c = 0; c < 3; ++c) {
      const LayerCase oracle{given.x.get(c), given.grad_y.get(c), given.affines.of(c),
                             DType::f32,     /*exact=*/false,     /*affine=*/DType::f32};
      expect_levels(oracle, found(run, c));
      expect_norms(oracle, found(run, c));
      expect_gradient(oracle, found(run, c));
    }
    if (HasFailure()) return;
  }
}

TEST(CudaWorld, HasTheSameBitsInEverySchedule) {
  using emulator::Schedule;
  for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
    World given({6, 3, 400}, Distribution::ties, DType::f32, layout);
    const WorldRun in_order = given.run({2, 4}, on_cuda());
    for (const Schedule& schedule : {Schedule{Schedule::reversed, 0}, {Schedule::shuffled, 1}}) {
      emulator::device().schedule = schedule;
      const WorldRun other = given.run({2, 4}, on_cuda());
      emulator::device().schedule = {};
      expect_same_bits(other, in_order);
      EXPECT_TRUE(other.grad_x == in_order.grad_x);
      EXPECT_TRUE(same(other.grad_affine, in_order.grad_affine));
    }
  }
}

TEST(CudaWorld, ANaNOnOneRankIsTheChannelsOnAll) {
  for (const auto& [spatial, image] : {std::pair{7, 0}, {7, 5}, {500, 0}, {500, 5}}) {
    for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
      World given({6, 3, spatial}, Distribution::normal);
      const WorldRun sound = given.run({2, 4}, on_cuda());
      std::vector<double> values = given.x.get(1);
      values[image * spatial] = bad;
      given.x.set(1, values);
      const WorldRun run = given.run({2, 4}, on_cuda());
      ASSERT_TRUE(run.alike);
      expect_same_bits(run, given.run({2, 4}));  // statistics and context, too
      for (const double v : run.y.get(1)) EXPECT_TRUE(std::isnan(v));
      for (const double v : run.grad_x.get(1)) EXPECT_TRUE(std::isnan(v));
      EXPECT_EQ(run.y.get(0), sound.y.get(0));
      EXPECT_EQ(run.y.get(2), sound.y.get(2));
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
