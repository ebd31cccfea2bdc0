// What the program says of an exception.
#pragma once

#include <exception>
#include <string>

#include "cli/commands.h"

namespace qact::cli {

// Of the command line that `app` has parsed; "help" where it named none.
std::string name_of_command(const CLI::App& app);

// One line. `app` has parsed the command line: out of memory, its command's options give a hint.
std::string message_of(const std::exception& error, const CLI::App& app);

}  // namespace qact::cli
