// Resizing as Pillow does it: bilinear with antialiasing (a triangle filter as wide as the
// reduction), separable, in 8 bits. And torchvision's centre crop.
#pragma once

#include "qact/image/image.h"

namespace qact::image {

Image resize_bilinear(const Image& image, int height, int width);

// The shorter side becomes `side`; the aspect ratio stays.
Image resize_shorter(const Image& image, int side);

Image centre_crop(const Image& image, int height, int width);

}  // namespace qact::image
