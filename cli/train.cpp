// qact train: trains a network in a run's folder, where it can be interrupted and resumed.
#include "qact/train/train.h"

#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <type_traits>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "cli/world.h"
#include "qact/base/fail.h"
#include "qact/train/network_options.h"

namespace qact::cli {
namespace {

struct TrainCommand {
  train::TrainConfig config;
  std::string config_file;  // TOML
  std::string output;
  bool resume = false;
  CLI::App* app = nullptr;
};

CLI::Option* option(const TrainCommand& train, const std::string& name) {
  return train.app->get_option("--" + name);
}

template <class Field>
void add(CLI::App& app, const std::string& name, Field& field, const char* help) {
  app.add_option("--" + name, field, help)->take_last();
}
void add(CLI::App& app, const std::string& name, std::vector<int64_t>& field, const char* help) {
  add_list(app, "--" + name, field, help);
}
void add(CLI::App& app, const std::string& name, bool& field, const char* help) {
  app.add_flag("--" + name, field, help);
}

std::set<std::string> config_names() {
  std::set<std::string> names;
  train::TrainConfig config;
  train::visit_fields(config, [&](const char* name, auto&, const char*) { names.insert(name); });
  return names;
}

// Of the fields that take several values.
std::set<std::string> list_names() {
  std::set<std::string> names;
  train::TrainConfig config;
  train::visit_fields(config, [&](const char* name, auto& field, const char*) {
    if (std::is_same_v<decltype(field), std::vector<int64_t>&>) names.insert(name);
  });
  return names;
}

// CLI11 joins the values of a name that stands twice.
void expect_each_once(const std::string& toml, const std::string& file) {
  std::set<std::string> seen;
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    if (line.find('=') == std::string::npos) continue;
    std::string name = line.substr(0, line.find('='));
    std::erase_if(name, [](char c) { return std::isspace(c) || c == '"' || c == '\''; });
    if (name.starts_with('#') || name.starts_with(';') || seen.insert(name).second) continue;
    throw CLI::ConfigError("[train] " + file + ": expected each option once, got " + name +
                           " again");
  }
}

// Sets the options that the file has and the command line has not.
void read_toml(const TrainCommand& train) {
  const std::string& file = train.config_file;
  if (file.empty()) return;
  std::ifstream input(file);
  if (!input || std::filesystem::is_directory(file)) {
    base::fail("train", "expected a TOML file that can be read, got ", file);
  }
  std::stringstream toml;
  toml << input.rdbuf();
  expect_each_once(toml.str(), file);
  const std::set<std::string> known = config_names(), lists = list_names();
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(toml)) {
    if (!item.parents.empty() || !known.contains(item.name)) {
      // A section comes as an item of its own before what is in it.
      const bool section = item.name == "++";
      throw CLI::ConfigError(
          "[train] " + file + ": expected the name of an option, got " +
          (section ? "the section [" + joined(item.parents, ".") + "]" : item.fullname()));
    }
    CLI::Option* const target = option(train, item.name);
    if (!lists.contains(item.name) && item.inputs.size() != 1) {
      throw CLI::ConfigError("[train] " + file + ": expected one value of " + item.name + ", got " +
                             std::to_string(item.inputs.size()));
    }
    if (target->count() > 0) continue;
    for (const std::string& input : item.inputs) target->add_result(input);
    target->run_callback();
  }
}

// The fields that were given, by a flag or in the file.
std::set<std::string> given(const TrainCommand& train) {
  std::set<std::string> names = config_names();
  std::erase_if(names, [&](const std::string& name) { return option(train, name)->count() == 0; });
  return names;
}

void print_epoch(const results::Row& row, int64_t epochs) {
  const auto number = [&](const char* name) { return row.at(name).get<double>(); };
  std::printf("epoch %3.0f/%lld  loss %.4f", number("epoch"), static_cast<long long>(epochs),
              number("loss"));
  if (row.contains("val_accuracy"))
    std::printf("  validation %.2f%%", 100 * number("val_accuracy"));
  std::printf("  lr %.3g  %.0f images/s", number("lr"), number("images_per_s"));
  std::printf("%s\n", row.value("best", false) ? "  best" : "");
  std::fflush(stdout);
}

// The bar at most ten times a second.
class Throttle {
 public:
  bool ready() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point last_;
};

train::TrainResult train_with_progress(const TrainCommand& train, const train::RunFolder& folder,
                                       const dist::World& world) {
  const InterruptGuard guard;
  ProgressBar bar("train");
  Throttle throttle;
  train::TrainEvents events;
  events.stopping = take_time;
  events.step = [&](const train::TrainStatus& status) {
    if (world.is_first() && throttle.ready()) {
      bar.show(status.share,
               ", " + std::to_string(std::lround(status.images_per_second)) + " images/s");
    }
    return !guard.interrupted();
  };
  if (world.is_first()) {
    events.epoch = [&](const results::Row& row) {
      bar.clear();
      print_epoch(row, train.config.epochs);
    };
    events.remark = [](const std::string& text) {
      std::fprintf(stderr, "qact: %s\n", text.c_str());
    };
  }
  return train::train(train.config, folder, train.resume, events, world);
}

void run_train_command(const TrainCommand& train, const dist::World& world) {
  const auto start = std::chrono::steady_clock::now();
  const train::RunFolder folder{train.output};
  const train::TrainResult result = train_with_progress(train, folder, world);
  if (result.interrupted) {
    throw std::runtime_error("interrupted after step " + std::to_string(result.steps) +
                             ", which is saved: the same command with --resume goes on");
  }
  if (!world.is_first()) return;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("%s after %lld epochs in %s", result.stopped_early ? "stopped early" : "done",
              static_cast<long long>(result.epochs), duration(spent.count()).c_str());
  if (result.best) {
    std::printf("; best validation accuracy %.2f%% in epoch %lld", 100 * *result.best,
                static_cast<long long>(result.best_epoch));
  }
  std::printf("; the run is %s\n", train.output.c_str());
}

// Options that were not given are the run's.
void adopt_saved_config(TrainCommand& train, const train::RunFolder& folder) {
  folder.expect_resumable();
  const train::TrainConfig saved = train::read_config(folder.config());
  train.config = train::overlay(saved, train.config, given(train));
  check_use([&] {
    train::check(train.config);
    train::check_same_run(train::run_identity(saved), train::resolved(train.config));
  });
}

// The command that torchrun starts again has begun the run before.
void resume_after_restart(TrainCommand& train, const dist::World& world) {
  const train::RunFolder folder{train.output};
  // The first rank writes the folder; another machine may see it later.
  const bool begun = world.restarted() && world.any(world.is_first() && folder.exists());
  if (train.resume || !begun) return;
  train.resume = true;
  adopt_saved_config(train, folder);
  if (!world.is_first()) return;
  std::fprintf(stderr, "qact: torchrun has restarted all ranks: the run in %s goes on\n",
               train.output.c_str());
}

}  // namespace

void setup_train(CLI::App& app) {
  auto train = std::make_shared<TrainCommand>();
  train->app = app.add_subcommand("train", "Train a network, and keep the run in a folder");
  CLI::App& command = *train->app;
  command.option_defaults()->always_capture_default();
  command.add_option("-o,--output", train->output, "Folder of the run")->required();
  command.add_option("--config", train->config_file,
                     "TOML file of the options below; the command line overrides it");
  command.add_flag("--resume", train->resume, "Resume the run in --output, with its options");
  train::visit_fields(train->config, [&](const char* name, auto& field, const char* help) {
    add(command, name, field, help);
  });
  command.callback([train] {
    read_toml(*train);
    if (train->resume) adopt_saved_config(*train, {train->output});
    check_dataset_name(train->config.data);
    check_use([&] {
      train::check(train->config);
      train::check_network(train::resolved(train->config));
    });
    run_in_world(train->config.device, [&](const dist::World& world) {
      resume_after_restart(*train, world);
      run_train_command(*train, world);
    });
  });
}

}  // namespace qact::cli
