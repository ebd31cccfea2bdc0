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

// Adds what 8 bits leave out: to each value of a normalised image noise that is uniform within half
// a grey level on either side. Pixels that tie no longer do, and no others change their order.
void add_dither(image::Size size, const std::vector<float>& table, base::Random random,
                float* image);
// The same noise for every image, so that an image alone decides what a network sees.
base::Random inference_dither();
// Whether so many pixels tie that it matters: a quarter or more of all values are the same.
bool needs_dither(const Split& split);

}  // namespace qact::data
