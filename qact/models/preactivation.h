// Residual networks whose blocks open with norm and activation: the sum is left untouched.
//
// Sites: trunk after the norm that opens a block and after the last norm. The first one reads
// the stem (stage 0), the others a residual sum, of the stage that made it (1 to 3). Branch
// between the two convolutions of a block; pooled.
#pragma once

#include "qact/models/layers.h"
#include "qact/models/network.h"
#include "qact/models/placement.h"

namespace qact::models {

struct PreactivationPlan {
  int64_t blocks;  // in each of the three stages
  int64_t width;   // channels 16 w, 32 w and 64 w; the stem has 16
  // How a block that changes the shape carries its input on: by a 1x1 convolution of the
  // activated input, or without weights, by pooling the input and padding it with zeros.
  bool convolved_shortcut;
  // Names in the usual Python versions.
  std::string stage, blocks_inside, last_norm;
};

std::shared_ptr<Network> make_preactivation(const PreactivationPlan& plan,
                                            const NetworkOptions& options);

}  // namespace qact::models
