// AugMix (Hendrycks et al. 2020): chains of operations on 8-bit images, mixed.
#pragma once

#include <span>
#include <vector>

#include "qact/base/random.h"
#include "qact/image/image.h"

namespace qact::data {

struct AugMix {
  int width = 3;        // chains
  int depth = 0;        // operations in a chain; 0: 1 to 3 at random
  double severity = 3;  // levels are drawn from 0.1 to this, out of 10
};

// level in [0, 10]; the sign of a movement is `positive` or not. As Pillow computes it.
struct Operation {
  const char* name;
  image::Image (*apply)(const image::Image& image, double level, bool positive);
};
std::span<const Operation> augmix_operations();

// An augmented image is a weighted sum of these.
struct Chain {
  image::Image image;
  float weight = 0;
};

// The image itself with weight 1 - m, and the ends of the chains with m w_i, where
// w ~ Dirichlet(1, ..., 1) and m ~ Beta(1, 1), which is uniform.
std::vector<Chain> augmix(const image::Image& image, const AugMix& options, base::Random* random);

}  // namespace qact::data
