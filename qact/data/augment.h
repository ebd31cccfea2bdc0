// The steps from 8-bit pixels (HWC) to an augmented, normalised float image (CHW).
#pragma once

#include <vector>

#include "qact/data/augmix.h"
#include "qact/data/split.h"

namespace qact::data {

struct Augmentation {
  int pad = 0;        // black pixels on each side, before a random crop of the image's size
  bool flip = false;  // horizontally, at random
  bool mix = false;   // AugMix
  AugMixOptions augmix = {};
  // So many AugMix views of each image beside the image itself, cropped and flipped alike: what a
  // consistency loss compares. With them, `mix` is of no account.
  int mixed_views = 0;

  int views() const { return 1 + mixed_views; }
};

// A random crop of the padded image, as the offset of the output's corner in the image (black
// outside), and a horizontal flip.
struct CropFlip {
  int top = 0, left = 0;
  bool flip = false;
};
CropFlip draw_crop_flip(const Augmentation& how, base::Random* random);

// (v / 255 - mean) / std for each channel and byte v; without moments, v / 255.
std::vector<float> normalisation_table(const Moments& moments, int channels);

// The flip comes first, then the crop.
image::Image crop_flip(const uint8_t* pixels, image::Size size, const CropFlip& at);

// `out` is CHW. `table`: of normalisation_table().
void write_normalised(const uint8_t* pixels, image::Size size, const CropFlip& at,
                      const std::vector<float>& table, float* out);
void write_mixed(const std::vector<WeightedImage>& terms, const std::vector<float>& table,
                 float* out);

}  // namespace qact::data
