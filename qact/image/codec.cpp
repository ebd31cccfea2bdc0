#include "qact/image/codec.h"

#include "qact/base/fail.h"

namespace qact::image {

namespace {

using base::fail;

// True for PNG, false for JPEG.
bool is_png(base::Bytes bytes) {
  if (bytes.size() >= 4 && bytes[0] == 0x89 && bytes[1] == 'P') return true;
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8) return false;
  if (bytes.empty()) fail("image", "expected a PNG or JPEG file, got an empty one");
  fail("image", "expected a PNG or JPEG file, got one that starts with byte ",
       static_cast<int>(bytes[0]));
}

}  // namespace

Image decode_image(base::Bytes bytes, int channels) {
  return is_png(bytes) ? decode_png(bytes, channels) : decode_jpeg(bytes, channels);
}

Image decode_image_grey(base::Bytes bytes) {
  return is_png(bytes) ? decode_png_grey(bytes) : decode_jpeg_grey(bytes);
}

}  // namespace qact::image
