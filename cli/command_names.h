// Command lines that name no command, or one that there is not.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace qact::cli {

// What to say of words whose first should be the names of a command and are not: the help where
// they end too early (`qact`, `qact data`), or which commands there are, and the one that may have
// been meant. Empty where they do name a command, or begin with an option.
std::string wrong_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace qact::cli
