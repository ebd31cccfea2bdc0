// The plasma fractal: midpoint displacement with periodic borders.
#pragma once

#include <vector>

#include "qact/corrupt/rng.h"

namespace qact::corrupt {

// side x side values in [0, 1]; `side` is a power of two. The displacement's amplitude is the
// square of a width that starts at 100 and is divided by `decay` each time the step halves.
std::vector<float> plasma(int side, double decay, Rng& rng);

}  // namespace qact::corrupt
