// WRN-40-4, a wide residual network: three stages of six pre-activation blocks, 64, 128 and 256
// channels. 8,949,210 parameters for 3 channels and 10 classes with ReLU.
//
// Sites: see preactivation.h.
#include "qact/models/factories.h"
#include "qact/models/preactivation.h"

namespace qact::models {

std::shared_ptr<Network> make_wrn_40_4(const NetworkOptions& options) {
  return make_preactivation({.blocks = 6,
                             .width = 4,
                             .convolved_shortcut = true,
                             .stage = "block",
                             .blocks_inside = "layer",
                             .last_norm = "bn1"},
                            options);
}

}  // namespace qact::models
