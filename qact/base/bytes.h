// A view of bytes that are owned elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace qact::base {

using Bytes = std::span<const uint8_t>;

// The same bytes for functions that take text.
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace qact::base
