// PNG files in memory. The decoders check what a file claims before they allocate, and throw
// std::runtime_error that says what they expected; the caller adds the file's name.
#pragma once

#include <vector>

#include "qact/base/bytes.h"
#include "qact/image/image.h"

namespace qact::image {

// channels: 1 or 3 converts to grey or RGB; 0 leaves grey as grey and converts all else to RGB.
Image decode_png(base::Bytes bytes, int channels = 0);

// Grey by libpng's own conversion, as OpenCV's imread(path, 0) gives: in linear light where the
// file states its gamma.
Image decode_png_grey(base::Bytes bytes);

std::vector<uint8_t> encode_png(const Image& image);

}  // namespace qact::image
