#include "qact/data/augment.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

// The padded, flipped image written out, then cut.
TEST(Augment, CropsAndFlipsAsPaddingFlippingAndCroppingDo) {
  const image::Size size{5, 6, 3};
  const Buffer pixels = pattern(size.values());
  const std::vector<float> table = normalisation_table({}, 3);
  constexpr int pad = 4;
  for (int top = -pad; top <= pad; ++top) {
    for (int left = -pad; left <= pad; ++left) {
      for (const bool flip : {false, true}) {
        image::Image padded({size.height + 2 * pad, size.width + 2 * pad, 3});
        for (int y = 0; y < size.height; ++y) {
          for (int x = 0; x < size.width; ++x) {
            const int from = flip ? size.width - 1 - x : x;
            std::copy_n(&pixels[(y * size.width + from) * 3], 3,
                        padded.row(y + pad) + 3 * (x + pad));
          }
        }
        const CropFlip at{top, left, flip};
        const image::Image placed = crop_flip(pixels.data(), size, at);
        std::vector<float> planes(size.values());
        write_normalised(pixels.data(), size, at, table, planes.data());
        for (int y = 0; y < size.height; ++y) {
          for (int x = 0; x < size.width; ++x) {
            for (int c = 0; c < 3; ++c) {
              const uint8_t expected = padded.row(y + top + pad)[3 * (x + left + pad) + c];
              ASSERT_EQ(placed.row(y)[3 * x + c], expected);
              ASSERT_EQ(planes[(c * size.height + y) * size.width + x], table[256 * c + expected]);
            }
          }
        }
      }
    }
  }
}

TEST(Augment, DrawsEveryCropAndFlip) {
  base::Random random(1, 0);
  std::set<std::tuple<int, int, bool>> seen;
  for (int i = 0; i < 2000; ++i) {
    const CropFlip at = draw_crop_flip({.pad = 2, .flip = true}, &random);
    seen.insert({at.top, at.left, at.flip});
    EXPECT_LE(std::max(std::abs(at.top), std::abs(at.left)), 2);
  }
  EXPECT_EQ(seen.size(), 5u * 5 * 2);
}

TEST(Augment, MixesAsTheWeightsSay) {
  const image::Size size{2, 2, 3};
  const std::vector<float> table = normalisation_table({{0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}}, 3);
  std::vector<WeightedImage> terms = {{image::Image(size), 0.25f}, {image::Image(size), 0.75f}};
  terms[0].image.pixels = pattern(12, 3);
  terms[1].image.pixels = pattern(12, 9);
  std::vector<float> out(12);
  write_mixed(terms, table, out.data());
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 4; ++p) {
      EXPECT_FLOAT_EQ(out[4 * c + p],
                      0.25f * table[256 * c + terms[0].image.pixels[3 * p + c]] +
                          0.75f * table[256 * c + terms[1].image.pixels[3 * p + c]]);
    }
  }
}

}  // namespace
}  // namespace qact::data
