// AugMix (Hendrycks et al. 2020): chains of operations on 8-bit images, and their mixture.
#pragma once

#include <span>
#include <vector>

#include "qact/base/random.h"
#include "qact/image/image.h"

namespace qact::data {

struct AugMixOptions {
  int width = 3;        // chains
  int depth = 0;        // operations in a chain; 0: 1 to 3 at random
  double severity = 3;  // levels are drawn from 0.1 to this, out of 10
};

// An operation as Pillow computes it. level: in [0, 10]; `positive`: the sign of a rotation, shear
// or translation.
struct AugMixOperation {
  const char* name;
  image::Image (*apply)(const image::Image& image, double level, bool positive);
};
std::span<const AugMixOperation> augmix_operations();

// One term of the mixture.
struct WeightedImage {
  image::Image image;
  float weight = 0;
};

// The terms whose weighted sum is the augmented image: the image itself with weight 1 - m, and the
// result of each chain with m w_i, where w ~ Dirichlet(1, ..., 1) and m ~ Beta(1, 1) (uniform).
std::vector<WeightedImage> augmix(const image::Image& image, const AugMixOptions& options,
                                  base::Random* random);

}  // namespace qact::data
