// Images and arrays to bytes and back. Every decoder checks what it is given before it
// allocates, and throws std::runtime_error with a message that names what was found and
// what was expected; the caller adds the file's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qact/image/image.h"

namespace qact::image {

using Bytes = std::span<const uint8_t>;

// More pixels than this in one image is a bomb, not an image.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;
// Throws where it has more; `format` names who refuses.
void check_pixels(std::string_view format, int64_t width, int64_t height);

// channels: 1 or 3 converts to grey or RGB; 0 keeps grey as grey and all else as RGB.
Image decode_png(Bytes bytes, int channels = 0);
std::vector<uint8_t> encode_png(const Image& image);

Image decode_jpeg(Bytes bytes, int channels = 0);
// As Pillow saves: 4:2:0 chroma for RGB, the slow integer transform; `optimise` makes
// the Huffman tables fit (smaller, the same pixels).
std::vector<uint8_t> encode_jpeg(const Image& image, int quality, bool optimise = false);

// By the first bytes: PNG or JPEG.
Image decode_image(Bytes bytes, int channels = 0);

// Grey as the decoders themselves make it, which is what OpenCV's imread(path, 0) gives: libpng's
// luma, in linear light where the file says its gamma, and the Y of a JPEG.
Image decode_png_grey(Bytes bytes);
Image decode_jpeg_grey(Bytes bytes);
Image decode_image_grey(Bytes bytes);

// numpy's .npy, version 1 to 3, C order, little-endian or single bytes.
struct ArrayHeader {
  std::string dtype;  // as numpy writes it: "|u1", "<i8", ...
  std::vector<int64_t> shape;
  int64_t data_offset = 0;  // from the file's start

  int64_t count() const;  // of elements
  int64_t item_bytes() const;
};
// `file_bytes` is the whole file's size, against which the shape is checked; `bytes` may
// be just its beginning.
ArrayHeader parse_npy_header(Bytes bytes, int64_t file_bytes);
std::vector<uint8_t> make_npy_header(const std::string& dtype, const std::vector<int64_t>& shape);

}  // namespace qact::image
