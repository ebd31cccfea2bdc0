// Synthetic images, the same here and in scripts/corruption_images.py.
#pragma once

#include <string>

#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::test {

// RGB: a gradient between four corners, six ellipses, a fine texture. Grey: three rings on
// black, like strokes of a digit.
image::Image test_image(int64_t index, int side, int channels);

// The images of the indices 0 to count - 1, one after the other.
std::vector<uint8_t> test_images(int64_t count, int side, int channels);

// Stand-ins for the published frost textures. The first file states its gamma, as the published one
// does.
std::shared_ptr<const corrupt::FrostTextures> synthetic_textures();

}  // namespace qact::test
