#include "qact/corrupt/frost_texture.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qact::corrupt {
namespace {

struct Statistics {
  double mean[3] = {}, deviation[3] = {};
  double beside = 0;  // correlation of G with the pixel to the right
};

Statistics measure(const image::Image& image) {
  const auto [height, width, channels] = image.size;
  Statistics s;
  const double n = height * width;
  for (int c = 0; c < 3; ++c) {
    double sum = 0, squares = 0, products = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double v = image.row(y)[x * 3 + c];
        sum += v;
        squares += v * v;
        products += v * image.row(y)[(x + 1) % width * 3 + c];
      }
    }
    s.mean[c] = sum / n;
    const double variance = squares / n - s.mean[c] * s.mean[c];
    s.deviation[c] = std::sqrt(variance);
    if (c == 1) s.beside = (products / n - s.mean[c] * s.mean[c]) / variance;
  }
  return s;
}

// Of the published images, scaled by .2.
TEST(FrostTexture, HasThePublishedStatistics) {
  const Statistics published[] = {{{78, 149, 166}, {27, 17, 15}, .69},
                                  {{201, 205, 215}, {21, 22, 23}, .60},
                                  {{201, 205, 215}, {21, 22, 23}, .60},
                                  {{138, 153, 165}, {28, 28, 30}, .48},
                                  {{112, 123, 135}, {44, 43, 42}, .58}};
  const auto textures = FrostTextures::procedural().prepared(0.2, 3);
  ASSERT_EQ(textures.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const Statistics found = measure(textures[i]);
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(found.mean[c], published[i].mean[c], 1) << i;
      EXPECT_NEAR(found.deviation[c], published[i].deviation[c], 1) << i;
    }
    EXPECT_NEAR(found.beside, published[i].beside, 0.04) << i;
  }
}

}  // namespace
}  // namespace qact::corrupt
