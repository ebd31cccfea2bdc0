// What the program prints.
#pragma once

#include <string>
#include <vector>

#include "qact/base/joined.h"
#include "qact/report/sections.h"

namespace qact::cli {

// Columns aligned, numbers to the right; one line per row.
std::string to_text(const report::Table& table);

using base::joined;

// Words quoted so that a shell reads them back as they are.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace qact::cli
