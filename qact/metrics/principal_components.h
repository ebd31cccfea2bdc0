// Principal components (PCA).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qact::metrics {

// values[n][dims], centred, in the coordinates of the first `count` principal directions (at most
// `dims`): [n][count], the largest variance first. Directions of nearly equal variance may come out
// rotated among themselves, which keeps all distances.
std::vector<float> principal_components(std::span<const float> values, int64_t dims, int64_t count,
                                        int threads = 0);

}  // namespace qact::metrics
