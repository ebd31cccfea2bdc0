// What the whole number of an option may be, told as wrong use where it is not.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace qact::cli {

CLI::Validator at_least(int64_t low);
CLI::Validator between(int64_t low, int64_t high);

// Of threads, as `qact train` takes it: 0 is one per core.
CLI::Validator thread_count();

// Every whole number that the app and its subcommands take has to be written as one that fits.
void check_whole_numbers(CLI::App& app);

}  // namespace qact::cli
