// How drops of water shine: brighter away from their edges on one side, as OpenCV's
// Canny, distance transform, equalisation and an emboss filter draw it.
#pragma once

#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

// `layer`: one channel, 0 where there is no water. In [0, 1]; all 0 for no water.
std::vector<float> water_mask(const std::vector<double>& layer, image::Size size);

// The steps, each on one channel.
std::vector<uint8_t> canny(const std::vector<uint8_t>& in, image::Size size, int low, int high);
std::vector<float> distance_to_zero(const std::vector<uint8_t>& in, image::Size size);
std::vector<uint8_t> equalise(const std::vector<uint8_t>& in);

}  // namespace qact::corrupt
