// qact toy: trains small networks that differ in one activation on problems that only a
// context solves, prints a table and writes results.jsonl and report.html.
#include "qact/report/toy.h"

#include <torch/version.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "qact/base/atomic_file.h"
#include "qact/report/page.h"
#include "qact/toy/toy.h"

namespace qact::cli {
namespace {

struct ToyCommand {
  toy::ToyOptions options;
  std::string experiment = "both";
  std::filesystem::path output = "runs/toy", figures;
  bool json = false;
};

// Every setting spelt out: it repeats the run whatever the defaults have become.
std::string full_command(const ToyCommand& toy) {
  const toy::ToyOptions& o = toy.options;
  return shell_command({"qact", "toy", "--experiment", toy.experiment, "--seeds",
                        std::to_string(o.seeds), "--steps", std::to_string(o.steps), "--width",
                        std::to_string(o.width), "--batch-size", std::to_string(o.batch_size),
                        "--contexts", std::to_string(o.contexts), "--output", toy.output.string()});
}

results::Row run_row(const ToyCommand& toy, double seconds) {
  const toy::ToyOptions& o = toy.options;
  return {{"kind", "run"},
          {"command", full_command(toy)},
          {"experiments", o.experiments},
          {"seeds", o.seeds},
          {"steps", o.steps},
          {"width", o.width},
          {"batch_size", o.batch_size},
          {"contexts", o.contexts},
          {"learning_rate", o.learning_rate},
          {"qact", QACT_VERSION},
          {"torch", TORCH_VERSION},
          {"seconds", std::round(seconds * 10) / 10}};
}

void print_summaries(const std::vector<results::ToySummary>& summaries, bool json) {
  if (!json) {
    print(to_text(report::toy_table(summaries)));
    return;
  }
  auto list = results::Row::array();
  for (const results::ToySummary& s : summaries) {
    list.push_back({{"experiment", s.experiment},
                    {"network", s.network},
                    {"seeds", s.seeds},
                    {"contexts", s.contexts},
                    {"mean", s.mean},
                    {"deviation", s.deviation},
                    {"worst", s.worst},
                    {"bayes", s.bayes}});
  }
  print(list.dump(2) + "\n");
}

void run_toy_command(const ToyCommand& toy) {
  // A folder that cannot be made is better known before the training than after it.
  std::filesystem::create_directories(toy.output);
  const auto start = std::chrono::steady_clock::now();
  results::Rows rows;
  const InterruptGuard guard;
  {
    ProgressBar bar("toy");
    rows = toy::run_toy(toy.options, [&](double share) {
      bar.show(share);
      return !guard.interrupted();
    });
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  rows.insert(rows.begin(), run_row(toy, spent.count()));

  results::write_rows(toy.output / "results.jsonl", rows);
  if (!toy.figures.empty()) report::write_charts(toy.figures, rows);
  const std::filesystem::path page = toy.output / "report.html";
  base::write_atomically(page, report::make_page("Quantile activation: the toy experiment", rows));

  print_summaries(results::summarise_toy(results::toy_scores(rows)), toy.json);
  std::fprintf(toy.json ? stderr : stdout, "%sdone in %s; the report is %s\n", toy.json ? "" : "\n",
               duration(spent.count()).c_str(), page.c_str());
}

}  // namespace

void setup_toy(CLI::App& app) {
  auto toy = std::make_shared<ToyCommand>();
  toy::ToyOptions& o = toy->options;
  CLI::App* command = app.add_subcommand(
      "toy", "Train ReLU, BatchNorm + ReLU and QAct on problems that only a context solves");
  command->option_defaults()->always_capture_default();
  command->add_option("--experiment", toy->experiment, "circle, monotone or both")
      ->check(one_of({"circle", "monotone", "both"}));
  command->add_option("--seeds", o.seeds, "Networks of each kind, with the seeds 0, 1, ...");
  command->add_option("--steps", o.steps, "Steps of training, one context each");
  command->add_option("--width", o.width, "Neurons in each hidden layer");
  command->add_option("--batch-size", o.batch_size, "Samples in a context; even");
  command->add_option("--contexts", o.contexts, "Fresh contexts to evaluate on");
  command->add_option("--threads", o.threads, "Networks trained at a time; 0: one per core");
  command->add_option("-o,--output", toy->output, "Folder for results.jsonl and report.html");
  command->add_option("--figures", toy->figures,
                      "Folder: also write each chart there, as Vega-Lite and as CSV");
  command->add_flag("--json", toy->json, "Print the table as JSON");
  command->callback([toy] {
    if (toy->experiment != "both") toy->options.experiments = {toy->experiment};
    check_use([&] { toy::check(toy->options); });
    run_toy_command(*toy);
  });
}

}  // namespace qact::cli
