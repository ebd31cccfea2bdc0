// Selects corruptions by name or group, as options of the program name them.
#pragma once

#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

// `selection`: names, or the groups benchmark (the 15), extra (4 more) and mnist (MNIST-C's).
// Empty: mnist for images of MNIST's size, else benchmark. Each once, in the order given. Throws
// for unknown names.
std::vector<std::string> select_corruptions(const std::vector<std::string>& selection,
                                            image::Size size);

// Ascending, each once: readers of five severities in one array take them for 1 to 5.
std::vector<int> select_severities(std::vector<int> selection);

}  // namespace qact::corrupt
