// Images against what Pillow reads and writes (tests/fixtures/image/make.py), and images
// that are not.
#include "qact/image/codec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/message.h"
#include "tests/image/fixtures.h"

namespace qact::image {
namespace {

using base::Bytes;
using test::fixture;
using test::fixture_array;
using ::testing::TestWithParam;
using ::testing::Values;

class PillowReads : public TestWithParam<const char*> {};

TEST_P(PillowReads, TheSamePixels) {
  const std::string name = std::string("image/") + GetParam();
  const Image image = decode_image(fixture(name));
  const test::Array expected = fixture_array(name + ".npy");
  ASSERT_EQ(image.size.height, expected.header.shape[0]);
  ASSERT_EQ(image.size.width, expected.header.shape[1]);
  ASSERT_EQ(image.size.channels, expected.header.shape.size() == 2 ? 1 : 3);
  EXPECT_EQ(image.pixels, expected.bytes);
}

INSTANTIATE_TEST_SUITE_P(Images, PillowReads,
                         Values("rgb.png", "grey.png", "bit.png", "palette.png", "alpha.png",
                                "deep.png", "rgb.jpg", "grey.jpg", "full.jpg", "progressive.jpg",
                                "inks.jpg"));

TEST(Jpeg, LosesWhatPillowLoses) {
  const int qualities[] = {7, 10, 15, 18, 25, 58, 65, 80, 85};
  for (const std::string name : {"rgb", "grey"}) {
    const Image image = decode_png(fixture("image/" + name + ".png"));
    const test::Array expected = fixture_array("image/jpeg_of_" + name + ".npy");
    auto view = expected.bytes.begin();
    for (const int quality : qualities) {
      for (const bool optimise : {false, true}) {
        const Image read = decode_jpeg(encode_jpeg(image, quality, optimise));
        EXPECT_TRUE(std::equal(read.pixels.begin(), read.pixels.end(), view))
            << name << " at quality " << quality;
      }
      view += image.size.values();
    }
  }
}

TEST(Png, ReadsBackWhatItWrites) {
  for (const Size size : {Size{1, 1, 1}, Size{5, 3, 3}, Size{28, 28, 1}, Size{2, 300, 3}}) {
    Image image(size);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = static_cast<uint8_t>(i * 37 + i / 7);
    }
    const Image read = decode_image(encode_png(image));
    EXPECT_EQ(read.size, size);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

TEST(Image, ConvertsItsChannels) {
  EXPECT_EQ(decode_png(fixture("image/rgb.png"), 1).pixels, fixture_array("image/luma.npy").bytes);
  const Image grey = decode_png(fixture("image/grey.png"));
  const Image rgb = decode_png(fixture("image/grey.png"), 3);
  ASSERT_EQ(rgb.size.channels, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) ASSERT_EQ(rgb.pixels[i], grey.pixels[i / 3]);
}

TEST(Image, RefusesEveryTruncation) {
  for (const char* name : {"image/rgb.png", "image/rgb.jpg", "image/progressive.jpg"}) {
    const std::vector<uint8_t> file = fixture(name);
    for (size_t length = 0; length + 2 < file.size(); length += 7) {
      const std::string message = message_of([&] { decode_image(Bytes(file).first(length)); });
      EXPECT_NE(message.find("expected a"), message.npos) << name << " cut to " << length;
    }
  }
}

TEST(Image, NoticesAFlippedBitInAPng) {
  const std::vector<uint8_t> file = fixture("image/rgb.png");
  for (size_t at = 0; at < file.size(); at += 5) {
    std::vector<uint8_t> flipped = file;
    flipped[at] ^= 4;
    EXPECT_NE(message_of([&] { decode_image(flipped); }), kNothingThrown) << "byte " << at;
  }
}

TEST(Image, RefusesWhatIsNoImage) {
  for (const std::string text : {"", "<html>", "GIF89a", "\x89PNG", "\xff\xd8"}) {
    const Bytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    EXPECT_NE(message_of([&] { decode_image(bytes); }), kNothingThrown) << text;
  }
}

void write_big_endian(uint8_t* at, uint32_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i, value >>= 8) at[i] = static_cast<uint8_t>(value);
}

uint32_t crc_of(const uint8_t* from, int count) {
  uint32_t crc = ~0u;
  for (int i = 0; i < count; ++i) {
    crc ^= from[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// An image of 8000 x 8000 is not too large, but its file too small.
void expect_bomb(const std::string& format, uint32_t side, const std::string& message) {
  const std::string length = std::to_string(side);
  EXPECT_NE(message.find(side <= 8000 ? "more pixels than its bytes can hold"
                                      : "[" + format + "] expected an image of at most 67108864 " +
                                            "pixels, got " + length + "x" + length + ", which are"),
            message.npos)
      << message;
}

TEST(Image, RefusesAPngBomb) {
  for (const uint32_t side : {8000u, 100000u, 0x7fffffffu}) {
    std::vector<uint8_t> file = fixture("image/rgb.png");
    write_big_endian(&file[16], side, 4);
    write_big_endian(&file[20], side, 4);
    write_big_endian(&file[29], crc_of(&file[12], 17), 4);
    expect_bomb("png", side, message_of([&] { decode_image(file); }));
  }
}

TEST(Image, RefusesAJpegBomb) {
  for (const uint32_t side : {8000u, 20000u, 65500u}) {
    std::vector<uint8_t> file = fixture("image/rgb.jpg");
    size_t frame = 0;
    while (file[frame] != 0xff || file[frame + 1] != 0xc0) ++frame;
    write_big_endian(&file[frame + 5], side, 2);
    write_big_endian(&file[frame + 7], side, 2);
    expect_bomb("jpeg", side, message_of([&] { decode_image(file); }));
  }
}

}  // namespace
}  // namespace qact::image
