// Decodes an image file in memory, PNG or JPEG by its first bytes.
#pragma once

#include "qact/image/jpeg.h"
#include "qact/image/png.h"

namespace qact::image {

// `channels` as for decode_png().
Image decode_image(base::Bytes bytes, int channels = 0);
Image decode_image_grey(base::Bytes bytes);

}  // namespace qact::image
