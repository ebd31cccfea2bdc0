// What to say of commands and options that there are not.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace qact::cli {

// Of words whose first should be the names of a command and are not: the help where they end too
// early (`qact`, `qact data`), or which commands there are, and the one that may have been meant.
// Empty where they do name a command, or begin with an option.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words);

// Of the first option that the command line, which `app` has parsed, should not have, and the one
// that may have been meant; empty where it has none.
std::string unknown_option(const CLI::App& app);

}  // namespace qact::cli
