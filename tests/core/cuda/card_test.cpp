// Which kernels a card is given: an H200, and one before sm_90 with less shared memory.
#include <gtest/gtest.h>

#include "tests/core/cuda/paths.h"

namespace qact::core::testing {
namespace {

struct OnCard {
  explicit OnCard(const emulator::Card& card) { emulator::device().card = card; }
  ~OnCard() { emulator::device().card = emulator::kH200; }
};

CudaLayerRun run(const Path& path, Given& given) {
  emulator::device().launches.clear();
  return CudaLayerRun(given.x, given.grad_y, given.affines, path.quantile, path.beside);
}

Given normal(const Path& path) {
  return Given(path, DType::f32,
               [](int64_t n, int64_t c) { return draw(Distribution::normal, n, 700 + c); });
}

// The same kernels give the same bits; where clusters are out of the question, passes do.
TEST(CudaCard, BeforeSm90NeedsNoClusters) {
  for (const Path& path : paths(DType::f32)) {
    SCOPED_TRACE(path.name);
    Given given = normal(path);
    const CudaLayerRun expected = run(path, given);
    const bool clusters = std::string(path.name).starts_with("clusters");
    const OnCard card({2, emulator::kMostShared, 80});
    const CudaLayerRun found = run(path, given);
    for (const emulator::Launch& launch : emulator::device().launches) {
      EXPECT_EQ(launch.cluster, 1u);
      EXPECT_EQ(launch.kernel.find("forward_small") != std::string::npos &&
                    path.shape.context_size() > 8192 && path.shape.channels < 96,
                false);
    }
    if (clusters) {
      EXPECT_EQ(emulator::device().launches.size(), 6u);
      EXPECT_EQ(found.level, expected.level);
    } else {
      expect_path(path, DType::f32, emulator::device().launches);
      EXPECT_TRUE(found == expected);
    }
  }
}

// What does not fit is refused with a message before anything is written; the rest is as it was.
TEST(CudaCard, WithLessSharedMemoryWorksOrSaysWhatItNeeds) {
  std::vector<std::string> refused;
  for (const Path& path : paths(DType::f32)) {
    SCOPED_TRACE(path.name);
    Given given = normal(path);
    const OnCard card(emulator::kWorkstation);
    try {
      const CudaLayerRun found = run(path, given);
      for (const emulator::Launch& launch : emulator::device().launches) {
        EXPECT_LE(launch.shared, emulator::kWorkstation.shared);
      }
      emulator::device().card = {3, emulator::kMostShared, 80};
      EXPECT_TRUE(found == run(path, given));
    } catch (const std::runtime_error& error) {
      refused.push_back(path.name);
      EXPECT_NE(std::string(error.what()).find("KiB of shared memory for a block, got one with 99"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(refused, (std::vector<std::string>{"four columns", "four columns of a slice",
                                               "four columns, exact", "passes over long columns"}));
}

}  // namespace
}  // namespace qact::core::testing
