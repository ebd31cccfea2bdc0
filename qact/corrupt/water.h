// The brightness of water drops for the spatter corruption, as OpenCV computes it: Canny edges, a
// distance transform, histogram equalisation and an emboss filter.
#pragma once

#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

// `layer`: one channel, 0 where there is no water. The mask is in [0, 1], and 0 without water.
std::vector<float> water_mask(const std::vector<double>& layer, image::Size size);

// The steps, each on one channel. distance_transform: the distance to the nearest 0.
std::vector<uint8_t> canny(const std::vector<uint8_t>& in, image::Size size, int low, int high);
std::vector<float> distance_transform(const std::vector<uint8_t>& in, image::Size size);
std::vector<uint8_t> equalise_histogram(const std::vector<uint8_t>& in);

}  // namespace qact::corrupt
