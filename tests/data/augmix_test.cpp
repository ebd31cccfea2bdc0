// Each operation against Pillow (tests/fixtures/data/make.py), and the mixture's law.
#include "qact/data/augmix.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/image/fixtures.h"

namespace qact::data {
namespace {

image::Image fixture_image() {
  image::Image out({16, 16, 3});
  out.pixels = test::fixture_array("data/augmix_image.npy").bytes;
  return out;
}

TEST(AugMix, OperationsGivePillowsPixels) {
  const double levels[] = {0.1, 0.7, 1.3, 2.6, 2.99, 7.5};
  const image::Image image = fixture_image();
  for (const AugMixOperation& operation : augmix_operations()) {
    const test::Array expected =
        test::fixture_array("data/augmix_" + std::string(operation.name) + ".npy");
    for (int64_t view = 0; view < expected.header.shape[0]; ++view) {
      const image::Image found = operation.apply(image, levels[view / 2], view % 2 == 0);
      EXPECT_TRUE(std::equal(found.pixels.begin(), found.pixels.end(),
                             expected.bytes.begin() + view * image.size.values()))
          << operation.name << " at level " << levels[view / 2] << ", view " << view;
    }
  }
}

TEST(AugMix, WeightsAreAMixture) {
  const image::Image image = fixture_image();
  base::Random random(3, 0);
  constexpr int kTrials = 2000;
  double clean = 0, first_share = 0, square = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto chains = augmix(image, {.depth = 1}, &random);
    ASSERT_EQ(chains.size(), 4u);
    EXPECT_EQ(chains[0].image.pixels, image.pixels);
    float sum = 0;
    for (const WeightedImage& chain : chains) sum += chain.weight;
    EXPECT_NEAR(sum, 1, 1e-5);
    clean += chains[0].weight;
    const double share = chains[1].weight / (1 - chains[0].weight);
    first_share += share;
    square += share * share;
  }
  // Uniform has mean 1/2; a part of Dirichlet(1, 1, 1) has mean 1/3 and variance 1/18.
  EXPECT_NEAR(clean / kTrials, 0.5, 0.025);
  EXPECT_NEAR(first_share / kTrials, 1.0 / 3, 0.02);
  EXPECT_NEAR(square / kTrials - 1.0 / 9, 1.0 / 18, 0.02);
}

TEST(AugMix, FlatImagesStayFlat) {
  image::Image flat({5, 6, 1});
  for (const AugMixOperation& operation : augmix_operations()) {
    if (std::string(operation.name) == "solarize") continue;
    EXPECT_EQ(operation.apply(flat, 2, true).pixels, flat.pixels) << operation.name;
  }
}

}  // namespace
}  // namespace qact::data
