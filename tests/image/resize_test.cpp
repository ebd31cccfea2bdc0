// Resized images against Pillow (tests/fixtures/image/make.py).
#include "qact/image/resize.h"

#include <gtest/gtest.h>

#include "qact/image/png.h"
#include "tests/base/message.h"
#include "tests/image/fixtures.h"

namespace qact::image {
namespace {

TEST(Resize, GivesPillowsPixels) {
  const Image image = decode_png(test::fixture("image/rgb.png"));
  for (const auto& [height, width] : {std::pair{7, 12}, {40, 60}, {19, 9}, {1, 1}}) {
    const std::string name = std::to_string(height) + "x" + std::to_string(width);
    const Image small = resize_bilinear(image, height, width);
    EXPECT_EQ(small.size, (Size{height, width, 3}));
    EXPECT_EQ(small.pixels, test::fixture_array("image/resized_" + name + ".npy").bytes) << name;
  }
}

TEST(Resize, KeepsTheAspectRatio) {
  EXPECT_EQ(resize_shorter(Image({30, 47, 1}), 10).size, (Size{10, 15, 1}));
  EXPECT_EQ(resize_shorter(Image({47, 30, 3}), 60).size, (Size{94, 60, 3}));
  EXPECT_EQ(resize_shorter(Image({8, 8, 3}), 8).size, (Size{8, 8, 3}));
}

TEST(CentreCrop, TakesTheCentre) {
  Image image({5, 7, 1});
  for (int i = 0; i < 35; ++i) image.pixels[i] = static_cast<uint8_t>(i);
  const Image middle = centre_crop(image, 3, 3);
  EXPECT_EQ(middle.pixels, (std::vector<uint8_t>{9, 10, 11, 16, 17, 18, 23, 24, 25}));
  EXPECT_NE(message_of([&] { centre_crop(image, 6, 3); }).find("at least 6x3, got 5x7"),
            std::string::npos);
}

}  // namespace
}  // namespace qact::image
