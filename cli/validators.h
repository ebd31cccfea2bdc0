// What the values of options may be. What they may not be, and can be judged from the command line
// alone, is wrong use of the program: exit status 2.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace qact::cli {

CLI::Validator at_least(int64_t low);
CLI::Validator between(int64_t low, int64_t high);
CLI::Validator one_of(const std::vector<std::string>& words);

// A number of threads, as `qact train` takes it: 0 is one per core.
CLI::Validator thread_count();

// Every number that the app and its subcommands take has to be written as one, and whole ones have
// to fit.
void check_numbers(CLI::App& app);

// What `check` throws becomes wrong use.
template <class Check>
void check_use(const Check& check) {
  try {
    check();
  } catch (const std::exception& error) {
    throw CLI::ValidationError(error.what());
  }
}

// A name has to be in the table of datasets; whether a path, which has a /, can be read is for the
// run to find out.
void check_dataset_name(const std::string& name_or_path);

}  // namespace qact::cli
