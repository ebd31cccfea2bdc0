// The layout of a tensor (batch, channels, ...) whose other dimensions are to be taken as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qact::core {

// Whether dimensions 2.. are one run of places with a single stride, which it returns.
inline bool one_stride(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                       int64_t& stride) {
  stride = 1;
  int64_t places = 0;  // of the dimensions so far, 0 before the first
  for (size_t d = sizes.size(); d-- > 2;) {
    if (sizes[d] == 1) continue;
    if (places == 0) {
      stride = strides[d];
      places = sizes[d];
    } else if (strides[d] == stride * places) {
      places *= sizes[d];
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace qact::core
