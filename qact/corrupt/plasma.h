// The plasma fractal: midpoint displacement on a torus.
#pragma once

#include <vector>

#include "qact/corrupt/draw.h"

namespace qact::corrupt {

// side x side values in [0, 1]; `side` is a power of two. The displacement's amplitude
// is the square of a width that starts at 100 and is divided by `decay` at every halving.
std::vector<float> plasma(int side, double decay, Draw& draw);

}  // namespace qact::corrupt
