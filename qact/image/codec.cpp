#include "qact/image/codec.h"

#include "qact/image/fail.h"

namespace qact::image {

void check_pixels(std::string_view format, int64_t width, int64_t height) {
  if (width * height <= kMostPixels) return;
  fail(format, "expected a picture of at most ", kMostPixels, " pixels, got ", width, "x", height,
       ", which are ", width * height);
}

Image decode_picture(Bytes bytes, int channels) {
  if (bytes.size() >= 4 && bytes[0] == 0x89 && bytes[1] == 'P') return decode_png(bytes, channels);
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8) {
    return decode_jpeg(bytes, channels);
  }
  if (bytes.empty()) fail("picture", "expected a PNG or JPEG file, got an empty one");
  fail("picture", "expected a PNG or JPEG file, got one that starts with byte ",
       static_cast<int>(bytes[0]));
}

}  // namespace qact::image
