// Residual networks of pre-activation blocks: norm and activation come before each convolution,
// and nothing follows the residual sum.
//
// Sites: trunk after the first norm of each block and after the last norm. The first of them reads
// the stem (stage 0), the others the residual sum of a stage (1 to 3). Branch between the two
// convolutions of a block; pooled. `split` with K = 1: all sites up to the first one of stage 2.
#pragma once

#include "qact/models/layers.h"
#include "qact/models/network.h"
#include "qact/models/placement.h"

namespace qact::models {

struct PreactivationArchitecture {
  int64_t blocks;  // in each of the three stages
  int64_t width;   // channels 16 w, 32 w and 64 w; the stem has 16
  // The shortcut of a block that changes the shape: a 1x1 convolution of the activated input; or,
  // without weights, the input average-pooled and its channels padded with zeros.
  bool convolved_shortcut;
  // Names of modules in the usual Python versions.
  std::string stage, blocks_inside, last_norm;
};

std::shared_ptr<Network> make_preactivation(const PreactivationArchitecture& architecture,
                                            const NetworkOptions& options);

}  // namespace qact::models
