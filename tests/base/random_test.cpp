#include "qact/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace qact::base {
namespace {

TEST(Random, RepeatsAndSpreads) {
  Random a(1, 2), b(1, 2), c(1, 3);
  double mean = 0;
  int equal = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = a.uniform();
    EXPECT_EQ(u, b.uniform());
    equal += u == c.uniform();
    EXPECT_TRUE(u >= 0 && u < 1);
    mean += u / 10000;
  }
  EXPECT_EQ(equal, 0);
  EXPECT_NEAR(mean, 0.5, 0.02);
}

TEST(Random, IndicesNestAndRepeat) {
  Random outer(5, Stream::augmentation);
  Random epoch(outer.bits(), 3);
  Random image(epoch.bits(), 8), same(5, Stream::augmentation, 3, 8);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(image.bits(), same.bits());
}

// The first numbers of every stream, at awkward seeds and indices: none comes twice.
TEST(Random, StreamsShareNothing) {
  std::vector<uint64_t> seeds = {0, 1, 2, 42, uint64_t{1} << 32, ~uint64_t{0}}, indices;
  for (uint64_t i = 0; i < 24; ++i) indices.insert(indices.end(), {i, ~i, i << 32});
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());

  std::vector<uint64_t> drawn;
  const auto draw = [&](Random random) {
    for (int i = 0; i < 3; ++i) drawn.push_back(random.bits());
  };
  for (uint64_t id = 0; id < static_cast<uint64_t>(Stream::count); ++id) {
    const auto stream = static_cast<Stream>(id);
    for (const uint64_t seed : seeds) {
      for (const uint64_t i : indices) {
        // With two indices, streams whose uses have one are at another place all the same.
        draw(Random(seed, stream, i));
        for (const uint64_t j : indices) draw(Random(seed, stream, i, j));
      }
    }
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

// Both were the same: what the loss drew for batch k, and how image k was cropped in the first
// epoch; which images are held out, and the order of the first epoch.
TEST(Random, LossAndAugmentationPart) {
  for (const uint64_t seed : {0, 7}) {
    for (const uint64_t k : {0, 1, 100}) {
      EXPECT_NE(Random(seed, Stream::loss, k).bits(),
                Random(seed, Stream::augmentation, 0, k).bits());
    }
    EXPECT_NE(Random(seed, Stream::holdout).bits(), Random(seed, Stream::order, 0).bits());
  }
}

}  // namespace
}  // namespace qact::base
