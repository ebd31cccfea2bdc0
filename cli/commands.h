// The subcommands, one file each: an options struct, setup, run. setup_NAME adds the
// subcommand and its options; parsing the command line then runs it.
#pragma once

#include <CLI/CLI.hpp>

namespace qact::cli {

void setup_corrupt(CLI::App& app);
void setup_data(CLI::App& app);
void setup_eval(CLI::App& app);
void setup_predict(CLI::App& app);
void setup_report(CLI::App& app);
void setup_toy(CLI::App& app);
void setup_train(CLI::App& app);

}  // namespace qact::cli
