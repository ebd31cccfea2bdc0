// What the program prints.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "qact/report/sections.h"

namespace qact::cli {

// Columns aligned, numbers to the right; one line per row.
std::string to_text(const report::Table& table);

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

// Words quoted so that a shell reads them back as they are.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace qact::cli
