#include "qact/image/colour.h"

#include <algorithm>

namespace qact::image {

Image with_channels(Image image, int channels) {
  if (channels == 0 || channels == image.size.channels) return image;
  Image out({image.size.height, image.size.width, channels});
  const int64_t pixels = int64_t{out.size.height} * out.size.width;
  for (int64_t i = 0; i < pixels; ++i) {
    if (channels == 1) {
      out.pixels[i] = luma(&image.pixels[3 * i]);
    } else {
      std::fill_n(&out.pixels[3 * i], 3, image.pixels[i]);
    }
  }
  return out;
}

}  // namespace qact::image
