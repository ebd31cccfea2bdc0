// Writes the safetensors format.
#pragma once

#include <vector>

#include "qact/safetensors/format.h"

namespace qact::safetensors {

// The same contents give the same bytes: names are sorted in the header. The data starts at a
// multiple of 8 and is ordered by item size, largest first, then by name, so that every tensor is
// aligned to its dtype without the gaps that the format forbids.
std::vector<uint8_t> encode(const Contents& contents);

}  // namespace qact::safetensors
