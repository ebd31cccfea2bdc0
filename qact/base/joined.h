// Lists as text.
#pragma once

#include <string>
#include <type_traits>

namespace qact::base {

// Strings or numbers, one behind the other.
template <class Items>
std::string joined(const Items& items, const char* separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(item)>>) {
      text += std::to_string(item);
    } else {
      text += item;
    }
  }
  return text;
}

}  // namespace qact::base
