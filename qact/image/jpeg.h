// JPEG files in memory. The decoders check what a file claims before they allocate, and throw
// std::runtime_error that says what they expected; the caller adds the file's name.
#pragma once

#include <vector>

#include "qact/base/bytes.h"
#include "qact/image/image.h"

namespace qact::image {

// channels: 1 or 3 converts to grey or RGB; 0 leaves grey as grey and converts all else to RGB.
Image decode_jpeg(base::Bytes bytes, int channels = 0);

// The file's Y channel, as OpenCV's imread(path, 0) gives.
Image decode_jpeg_grey(base::Bytes bytes);

// As Pillow saves: 4:2:0 chroma for RGB, the slow integer DCT. `optimise` fits the Huffman tables
// to the image: a smaller file with the same pixels.
std::vector<uint8_t> encode_jpeg(const Image& image, int quality, bool optimise = false);

}  // namespace qact::image
