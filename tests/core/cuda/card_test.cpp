// A card before sm_90 with 99 KiB of shared memory for a block, next to an H200.
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

// Passes do what clusters cannot. What fits has the same kernels and bits as on an H200, and what
// does not is refused by a message that says what it needs.
TEST(CudaCard, ASmallerOneGivesTheSameBitsOrSaysWhatItNeeds) {
  std::vector<std::string> refused;
  for (const Path& path : paths(DType::f32)) {
    SCOPED_TRACE(path.name);
    Given given = normal(path);
    const CudaLayerRun expected = run(path, given);
    const OnCard card(emulator::kWorkstation);
    try {
      const CudaLayerRun found = run(path, given);
      if (std::string(path.name).starts_with("clusters")) {
        EXPECT_EQ(emulator::device().launches.size(), 6u);
        for (const auto& launch : emulator::device().launches) EXPECT_EQ(launch.cluster, 1u);
        EXPECT_EQ(found.code, expected.code);
      } else {
        expect_path(path, DType::f32, emulator::device().launches);
        EXPECT_TRUE(found == expected);
      }
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
