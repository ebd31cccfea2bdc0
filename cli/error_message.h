// What the program says of an exception.
#pragma once

#include <exception>
#include <string>

#include "cli/commands.h"

namespace qact::cli {

// The innermost command that the command line, which `app` has parsed, names; `app` where it
// names none.
const CLI::App& parsed_command(const CLI::App& app);
// "qact", "qact train", "qact data check".
std::string command_path(const CLI::App& app);
// "train", "data", as in "[data] expected ..."; "help" where the command line names none.
std::string command_name(const CLI::App& app);

// One line. `app` has parsed the command line: out of memory, its command's options give a hint.
std::string message_of(const std::exception& error, const CLI::App& app);

}  // namespace qact::cli
