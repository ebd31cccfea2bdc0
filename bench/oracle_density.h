// The oracle's density at every value of a long channel.
#pragma once

#include <vector>

#include "qact/core/reference.h"

namespace qact::bench {

// core::reference::density takes time linear in the context, at every value of it. The same sum
// over counts in fine cells is as good as equal, and is checked against it at a few values: throws
// if they differ.
std::vector<double> oracle_density(const std::vector<double>& z,
                                   const core::reference::Parameters& parameters);

}  // namespace qact::bench
