// The steps of an augmented, normalised image.
#pragma once

#include "qact/data/loader.h"

namespace qact::data {

// Where the output's corner lies in the image (outside is black), and whether its rows run
// backwards.
struct CropFlip {
  int top = 0, left = 0;
  bool flip = false;
};
CropFlip draw_placement(const Augmentation& how, base::Random* random);

// (v / 255 - mean) / std of each channel and byte; without moments, v / 255.
std::vector<float> normalisation_table(const Moments& moments, int channels);

image::Image place(const uint8_t* pixels, image::Size size, const CropFlip& placement);

// Planes first.
void write_normalised(const uint8_t* pixels, image::Size size, const CropFlip& placement,
                      const std::vector<float>& table, float* out);
void write_mixed(const std::vector<Chain>& chains, const std::vector<float>& table, float* out);

}  // namespace qact::data
