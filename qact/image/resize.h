// Resizing as Pillow does it: a triangle filter as wide as the reduction, in 8 bits and two
// passes; and the crop around the middle.
#pragma once

#include "qact/image/image.h"

namespace qact::image {

Image resize_bilinear(const Image& image, int height, int width);

// The shorter side becomes `side`, the other follows.
Image resize_shorter(const Image& image, int side);

Image crop_middle(const Image& image, int height, int width);

}  // namespace qact::image
