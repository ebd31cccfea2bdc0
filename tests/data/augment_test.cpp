#include "qact/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
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

// 5 x 5: no multiple of the values that share what is drawn.
TEST(Augment, DithersWithinAGreyLevel) {
  const image::Size size{5, 5, 3};
  const Moments moments = {{0.5, 0.4, 0.3}, {0.2, 0.3, 0.4}};
  const std::vector<float> table = normalisation_table(moments, 3);
  std::vector<double> noise;  // in grey levels
  std::set<float> values;
  for (int image = 0; image < 200; ++image) {
    std::vector<float> plain(size.values());
    for (int64_t i = 0; i < size.values(); ++i) plain[i] = table[256 * (i / 25) + i % 256];
    std::vector<float> dithered = plain;
    add_dither(size, table, base::Random(3, base::Stream::dither, image), dithered.data());
    for (int64_t i = 0; i < size.values(); ++i) {
      noise.push_back((dithered[i] - plain[i]) * moments.std[i / 25] * 255);
      EXPECT_LE(std::abs(noise.back()), 0.5001);
      if (i == 0) values.insert(dithered[i]);
    }
  }
  EXPECT_GT(values.size(), 195u);  // of 65,536
  double sum = 0, square = 0;
  for (const double v : noise) sum += v, square += v * v;
  const auto n = static_cast<double>(noise.size());  // 15,000
  EXPECT_NEAR(sum / n, 0, 4 * std::sqrt(1 / (12 * n)));
  EXPECT_NEAR(square / n, 1.0 / 12, 0.003);
}

TEST(Augment, DithersAnImageAlikeForTheSameDraw) {
  const image::Size size{4, 4, 1};
  const std::vector<float> table = normalisation_table({}, 1);
  const auto dithered = [&](const base::Random& random) {
    std::vector<float> image(16);
    add_dither(size, table, random, image.data());
    return image;
  };
  EXPECT_EQ(dithered(inference_dither()), dithered(inference_dither()));
  EXPECT_NE(dithered(inference_dither()), dithered(base::Random(0, base::Stream::dither, 0)));
}

// The same numbers stand in tests/package/test_dither.py.
TEST(Augment, DithersAlikeInThePackage) {
  const image::Size size{1, 5, 2};
  const std::vector<float> table = normalisation_table({}, 2);
  std::vector<float> image(10);
  add_dither(size, table, inference_dither(), image.data());
  std::vector<int> found;
  for (const float v : image)
    found.push_back(static_cast<int>(std::lround((v * 255 + 0.5) * 65536 - 0.5)));
  EXPECT_EQ(found,
            (std::vector<int>{16161, 48801, 50879, 5334, 51945, 1186, 56988, 24541, 9672, 31629}));
}

TEST(Augment, NeedsDitherWhereAQuarterOfAllValuesTie) {
  const auto with_zeros = [](int zeros) {
    Buffer pixels(16);
    for (int i = zeros; i < 16; ++i) pixels[i] = static_cast<uint8_t>(i + 1);
    return needs_dither(make_split({2, 2, 1}, 2, std::move(pixels), {0, 1, 0, 1}));
  };
  EXPECT_TRUE(with_zeros(16));
  EXPECT_TRUE(with_zeros(4));
  EXPECT_FALSE(with_zeros(3));
}

}  // namespace
}  // namespace qact::data
