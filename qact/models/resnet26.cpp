// ResNet26, the network of the paper on test-time training: three stages of four pre-activation
// blocks, 16, 32 and 64 channels, shortcuts without weights. 366,938 parameters for 3 channels and
// 10 classes with ReLU. That paper's main results have the norm "group".
//
// Sites: see preactivation.h.
#include "qact/models/factories.h"
#include "qact/models/preactivation.h"

namespace qact::models {

std::shared_ptr<Network> make_resnet26(const NetworkOptions& options) {
  return make_preactivation({.blocks = 4,
                             .width = 1,
                             .convolved_shortcut = false,
                             .stage = "layer",
                             .blocks_inside = "",
                             .last_norm = "bn"},
                            options);
}

}  // namespace qact::models
