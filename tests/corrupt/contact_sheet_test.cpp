#include "qact/corrupt/contact_sheet.h"

#include <gtest/gtest.h>

#include "qact/corrupt/corrupt.h"
#include "qact/corrupt/font.h"
#include "tests/corrupt/test_images.h"

namespace qact::corrupt {
namespace {

TEST(ContactSheet, ShowsEveryCorruptionAndSeverity) {
  const image::Image image = test::test_image(1, 64, 3);
  const auto frost = std::make_shared<const FrostTextures>(FrostTextures::procedural());
  const image::Image sheet = contact_sheet(image, {"fog", "contrast"}, {1, 5}, 4, frost);
  // Two rows of tiles below the numbers; the last tile ends at the last pixel but the gap.
  image::Image tile(image.size);
  Corruptor("contrast", 5, image.size, 4).apply(image.pixels.data(), 0, tile.pixels.data());
  const int top = sheet.size.height - 4 - 64, left = sheet.size.width - 4 - 64;
  for (int y = 0; y < 64; ++y) {
    EXPECT_TRUE(std::equal(tile.row(y), tile.row(y) + 64 * 3, sheet.row(top + y) + left * 3));
  }
  EXPECT_EQ(sheet.pixels[0], 255);
}

TEST(ContactSheet, SaysWhichFrostItIs) {
  const image::Image image = test::test_image(1, 64, 3);
  const auto wide = [&](std::shared_ptr<const FrostTextures> frost) {
    return contact_sheet(image, {"frost"}, {1}, 0, std::move(frost)).size.width;
  };
  const std::string procedural = "procedural", synthetic = "synthetic";
  EXPECT_EQ(wide(nullptr) - wide(test::synthetic_textures()),
            2 * kLetterWidth * static_cast<int>(procedural.size() - synthetic.size()));
}

}  // namespace
}  // namespace qact::corrupt
