// qact eval: evaluates trained runs under corruptions, in several ways of inference; adds rows
// to results.jsonl in each run's folder and prints a summary.
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/inference_options.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "cli/world.h"
#include "qact/adapt/method.h"
#include "qact/eval/evaluate.h"
#include "qact/eval/frost.h"
#include "qact/eval/image_stream.h"
#include "qact/eval/summary.h"

namespace qact::cli {
namespace {

struct EvalCommand {
  std::vector<std::string> runs;
  eval::EvaluateOptions options;
  bool json = false;
};

// Repeats the row whatever the defaults have become.
std::string full_command(const eval::EvaluateOptions& options, const std::string& run) {
  std::vector<std::string> words = {"qact", "eval", run};
  for (const auto& [name, value] : eval::settings(options)) {
    if (value.empty()) continue;
    words.push_back("--" + name);
    if (name != "diagnostics") words.push_back(value);  // a flag
  }
  return shell_command(words);
}

std::string percent(double share) {
  if (std::isnan(share)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 100 * share);
  return text;
}

// Accuracies in percent, as all else here.
report::Table summary_table(const std::vector<eval::EvaluateSummary>& summaries,
                            const std::vector<std::string>& names) {
  report::Table table{{{"run"}, {"stream"}, {"mode"}, {"adapt"}, {"classifier"}}, {}};
  for (int severity = 0; severity <= 5; ++severity) {
    table.columns.push_back({"acc " + std::to_string(severity), true});
  }
  for (const char* title : {"drop 0-5", "mCE", "rel. mCE", "ece top 0", "ece top 5"}) {
    table.columns.push_back({title, true});
  }
  const auto at = [](const std::map<int, double>& values, int severity) {
    const auto found = values.find(severity);
    return percent(found == values.end() ? NAN : found->second);
  };
  for (size_t i = 0; i < summaries.size(); ++i) {
    const eval::EvaluateSummary& s = summaries[i];
    std::vector<std::string> row = {names[i], s.setting.stream, s.setting.mode, s.setting.adapt,
                                    s.setting.classifier};
    for (int severity = 0; severity <= 5; ++severity) row.push_back(at(s.accuracy, severity));
    row.insert(row.end(),
               {percent(s.drop(0, 5)), percent(s.corruption_error),
                percent(s.relative_corruption_error), at(s.ece_top, 0), at(s.ece_top, 5)});
    table.rows.push_back(row);
  }
  return table;
}

results::Row summary_json(const eval::EvaluateSummary& s, const std::string& name) {
  const auto list = [](const std::map<int, double>& values) {
    auto out = results::Row::object();
    for (const auto& [severity, value] : values) out[std::to_string(severity)] = value;
    return out;
  };
  return {{"run", name},
          {"dataset", s.setting.dataset},
          {"model", s.setting.model},
          {"activation", s.setting.activation},
          {"stream", s.setting.stream},
          {"mode", s.setting.mode},
          {"adapt", s.setting.adapt},
          {"classifier", s.setting.classifier},
          {"seed", s.seed},
          {"accuracy", list(s.accuracy)},
          {"ece_top", list(s.ece_top)},
          {"ece_marginal", list(s.ece_marginal)},
          {"map100", list(s.map100)},
          {"drop", s.drop(0, 5)},
          {"mce", s.corruption_error},
          {"relative_mce", s.relative_corruption_error}};
}

void print_lines(const results::Rows& rows, const std::string& name) {
  for (const results::Row& row : results::of_kind(rows, "scores")) {
    const auto text = [&](const char* field) { return row.at(field).get<std::string>(); };
    const std::string how =
        joined(std::vector{text("stream"), text("mode"), text("adapt"), text("classifier")}, "  ");
    std::fprintf(stderr, "%s  %s %d  %s  accuracy %s%%\n", name.c_str(), text("corruption").c_str(),
                 row.at("severity").get<int>(), how.c_str(),
                 percent(row.at("accuracy").get<double>()).c_str());
  }
}

int cores_per_rank() {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / this_rank().local_size);
}

eval::EvaluateResult evaluate_run(const EvalCommand& eval, const std::string& name,
                                  const InterruptGuard& guard, const dist::World& world) {
  eval::EvaluateOptions options = eval.options;
  options.command = [&](const eval::EvaluateOptions& all) { return full_command(all, name); };
  if (options.threads == 0 && !world.alone()) options.threads = cores_per_rank();
  options.versions = {{"qact", QACT_VERSION}, {"torch", TORCH_VERSION}};
  ProgressBar bar("eval " + name);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  eval::EvaluateEvents events;
  events.progress = [&](double share) {
    if (world.is_first()) bar.show(share);
    return !guard.interrupted();
  };
  events.written = [&](const results::Rows& rows) {
    if (!terminal) print_lines(rows, name);
  };
  return eval::evaluate({name}, options, events, world);
}

void run_eval(const EvalCommand& eval, const dist::World& world) {
  const auto start = std::chrono::steady_clock::now();
  const InterruptGuard guard;
  std::vector<eval::EvaluateSummary> summaries;
  std::vector<std::string> names;
  size_t made = 0, kept = 0;
  // A mistyped name is better known now than after hours.
  for (const std::string& name : eval.runs) train::expect_in_run(train::RunFolder{name}.config());
  for (const std::string& name : eval.runs) {
    const eval::EvaluateResult result = evaluate_run(eval, name, guard, world);
    if (result.interrupted) {
      // The first rank alone knows how many there are.
      const std::string made = world.is_first() ? std::to_string(result.made) : "finished";
      throw std::runtime_error("interrupted: " + made +
                               " rows are saved, and the same command goes on");
    }
    if (!world.is_first()) continue;
    if (!result.remark.empty()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), result.remark.c_str());
    }
    if (result.stale > 0) {
      std::fprintf(stderr, "%s: removed %zu rows of weights that were replaced since\n",
                   name.c_str(), result.stale);
    }
    made += result.made;
    kept += result.kept;
    for (const eval::EvaluateSummary& s : eval::summarise(result.rows)) {
      summaries.push_back(s);
      names.push_back(name);
    }
  }
  if (!world.is_first()) return;
  if (eval.json) {
    auto list = results::Row::array();
    for (size_t i = 0; i < summaries.size(); ++i) {
      list.push_back(summary_json(summaries[i], names[i]));
    }
    print(list.dump(2) + "\n");
  } else {
    print(to_text(summary_table(summaries, names)));
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::fprintf(eval.json ? stderr : stdout, "%s%zu rows made in %s, %zu were there\n",
               eval.json ? "" : "\n", made, duration(spent.count()).c_str(), kept);
}

// A method of adaptation goes only with those of --modes that it works in.
void print_left_out(const eval::EvaluateOptions& o) {
  for (const std::string& name : o.adapt) {
    const adapt::MethodInfo& method = adapt::find_method(name);
    std::vector<std::string> left_out;
    for (const std::string& mode : o.modes) {
      if (!method.works_in(mode)) left_out.push_back(mode);
    }
    if (left_out.empty()) continue;
    std::fprintf(stderr, "qact: --adapt %s works with --modes %s, so not with %s\n", name.c_str(),
                 joined(method.modes, ", ").c_str(), joined(left_out, ", ").c_str());
  }
}

void add_stream_options(CLI::App& command, eval::EvaluateOptions& o) {
  add_list(command, "--adapt", o.adapt,
           "Any of " + joined(adapt::method_names(), ", ") +
               ": test-time adaptation; tent goes with the mode batch alone")
      ->check(one_of(adapt::method_names()));
  add_list(command, "--stream", o.streams,
           "Any of " + joined(eval::stream_names(), ", ") +
               ": one corruption at a time, all of a severity shuffled, or neighbours with the "
               "same label")
      ->check(one_of(eval::stream_names()));
}

void add_data_options(CLI::App& command, eval::EvaluateOptions& o) {
  add_list(command, "--corruptions", o.corruptions,
           "Names, or the groups benchmark, extra and mnist; default: as `qact corrupt`");
  add_list(command, "--severities", o.severities, "From 0, the clean images, to 5");
  command.add_option("--data", o.data,
                     "Name of a dataset, or path of a custom one, with a /; default: the run's");
  command.add_option("--data-dir", o.data_dir, "Folder of the datasets; default: the run's");
  command.add_option("--official", o.official,
                     "Folder of the published corrupted set, or of `qact corrupt`'s arrays; "
                     "default: corruptions are made on the fly");
  command.add_option("--frost", o.frost, eval::kFrostHelp)->check(eval::frost_refusal);
  command.add_option("--data-seed", o.data_seed, "Draws corruptions, augmented copies and streams");
  command.add_option("--limit", o.limit, "Only the first so many test images; 0: all")
      ->check(at_least(0));
}

}  // namespace

void setup_eval(CLI::App& app) {
  auto eval = std::make_shared<EvalCommand>();
  eval::EvaluateOptions& o = eval->options;
  CLI::App* command = app.add_subcommand(
      "eval", "Evaluate trained runs under corruptions; results that are there are kept");
  command->option_defaults()->always_capture_default();
  command->add_option("runs", eval->runs, "Folders of `qact train`")->required();
  add_inference_options(*command, Choice::any, o.modes, o.classifiers, o.inference);
  add_stream_options(*command, o);
  add_data_options(*command, o);
  command->add_flag("--diagnostics", o.diagnostics,
                    "Also compute t-SNE and histograms of one corruption");
  command->add_option("--diagnostic-corruption", o.diagnostic_corruption,
                      "Corruption of --diagnostics; default: the first one evaluated");
  command
      ->add_option("--diagnostic-samples", o.diagnostic_samples,
                   "Images of each severity in --diagnostics")
      ->check(at_least(1));
  command->add_option("--weights", o.weights, "model (the last epoch's) or best (by validation)");
  command->add_option("--device", o.device, "cpu, cuda or cuda:N");
  command->add_option("--threads", o.threads, "Jobs at a time; 0: one per core")
      ->check(thread_count());
  command->add_flag("--json", eval->json, "Print the summary as JSON");
  command->callback([eval] {
    check_use([&] { eval::check(eval->options); });
    if (!eval->options.data.empty()) check_dataset_name(eval->options.data);
    if (this_rank().rank == 0) print_left_out(eval->options);
    run_in_world(eval->options.device, [&](const dist::World& world) { run_eval(*eval, world); });
  });
}

}  // namespace qact::cli
