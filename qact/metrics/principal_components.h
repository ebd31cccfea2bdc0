// Principal components: the directions in which points differ most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qact::metrics {

// values[n][dims], centred, in the coordinates of the first `count` principal directions:
// [n][count], the most spread first; at most `dims` of them. Directions whose spreads are
// close may come out mixed, which keeps all distances.
std::vector<float> principal_components(std::span<const float> values, int64_t dims, int64_t count,
                                        int threads = 0);

}  // namespace qact::metrics
