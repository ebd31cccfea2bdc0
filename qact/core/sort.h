// Sorting of floating values without NaN. -0 comes out as +0.
#pragma once

#include <cstdint>
#include <vector>

namespace qact::core {

// `scratch` is kept by the caller so that repeated sorts do not allocate.
template <class Real>
void sort_values(Real* values, int64_t n, std::vector<uint8_t>& scratch);

}  // namespace qact::core
