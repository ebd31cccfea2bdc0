#include "qact/image/image.h"

#include "qact/base/fail.h"

namespace qact::image {

void check_pixels(std::string_view format, int64_t width, int64_t height) {
  if (width * height <= kMaxPixels) return;
  base::fail(format, "expected an image of at most ", kMaxPixels, " pixels, got ", width, "x",
             height, ", which are ", width * height);
}

}  // namespace qact::image
