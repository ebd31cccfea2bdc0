// Conversion between grey and RGB, as Pillow does it.
#pragma once

#include "qact/image/image.h"

namespace qact::image {

// ITU-R 601 luma in 16 fractional bits, rounded.
inline uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// channels: 1 or 3; 0 leaves the image as it is.
Image with_channels(Image image, int channels);

}  // namespace qact::image
