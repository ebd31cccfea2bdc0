// Images that repeat exactly, made alike here and in scripts/corruption_images.py.
#pragma once

#include <string>

#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt::testing {

// RGB: a gradient between four corners, six ellipses, a fine texture. Grey: three rings on
// black, like strokes of a digit.
image::Image image(int64_t index, int side, int channels);

// `count` images, one after the other.
std::vector<uint8_t> images(int64_t count, int side, int channels);

// Stand-ins for the published frost textures. The first says its gamma, as theirs does.
std::shared_ptr<const FrostTextures> synthetic_textures();

}  // namespace qact::corrupt::testing
