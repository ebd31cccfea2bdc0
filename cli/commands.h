// The subcommands, one file each: an options struct, setup, run. setup_NAME adds the
// subcommand and its options; parsing the command line then runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace qact::cli {

void setup_corrupt(CLI::App& app);
void setup_data(CLI::App& app);
void setup_eval(CLI::App& app);
void setup_predict(CLI::App& app);
void setup_report(CLI::App& app);
void setup_toy(CLI::App& app);
void setup_train(CLI::App& app);

// A list is written with commas or by repeating its option, never with blanks: what follows may be
// a positional.
template <class Item>
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<Item>& list,
                      const std::string& help) {
  return command.add_option(name, list, help)->delimiter(',')->allow_extra_args(false);
}

}  // namespace qact::cli
