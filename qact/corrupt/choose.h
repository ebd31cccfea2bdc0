// Corruptions by name or group, as a command line says them.
#pragma once

#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

// `wanted` are names, or the groups benchmark (the 15), extra (4 more) and mnist (MNIST-C's).
// None: the group of the set that images of this size are like. Throws for unknown names.
std::vector<std::string> choose(const std::vector<std::string>& wanted, image::Size size);

}  // namespace qact::corrupt
