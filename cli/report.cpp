// qact report: rows of results to one page that needs nothing but a browser.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "qact/base/atomic_file.h"
#include "qact/corrupt/contact_sheet.h"
#include "qact/corrupt/corrupt.h"
#include "qact/data/dataset.h"
#include "qact/image/png.h"
#include "qact/report/base64.h"
#include "qact/report/means.h"
#include "qact/report/page.h"
#include "qact/report/summary.h"
#include "qact/results/score.h"
#include "qact/results/where.h"

namespace qact::cli {
namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  std::vector<fs::path> runs;
  fs::path output = "report.html";
  std::string title = "Quantile activation under corruption";
  std::string figures, data_dir;
  std::vector<std::string> where;
  bool no_sheet = false, summary = false, json = false;
};

// A run's folder, or the file itself.
fs::path rows_file(const fs::path& run) {
  if (!fs::exists(run)) {
    throw std::runtime_error("[report] expected a run's folder or a results.jsonl, got " +
                             run.string() + ", which is not there");
  }
  if (!fs::is_directory(run)) return run;
  if (!fs::exists(run / "results.jsonl")) {
    throw std::runtime_error("[report] expected results.jsonl in the folder " + run.string() +
                             ", got none: `qact eval` and `qact toy` write it");
  }
  return run / "results.jsonl";
}

results::Rows read_all(const std::vector<fs::path>& runs) {
  results::Rows rows;
  std::set<fs::path> seen;
  for (const fs::path& run : runs) {
    const fs::path file = rows_file(run);
    if (!seen.insert(fs::canonical(file)).second) {
      std::fprintf(stderr, "qact: left out %s, which was given before\n", run.c_str());
      continue;
    }
    size_t torn = 0;
    results::Rows more = results::read_rows_so_far(file, torn);
    if (torn > 0) {
      std::fprintf(stderr, "qact: left out line %zu of %s, which is not whole\n", torn,
                   file.c_str());
    }
    if (more.empty()) {
      throw std::runtime_error("[report] expected rows, got none in " + file.string());
    }
    results::check_evaluations(more, file.string());
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

// Where a run was trained, as the command that evaluated it has it: quoted for a shell.
std::string trained_in(const results::Rows& rows, const results::Row& config) {
  const std::string eval = "qact eval ";
  const results::Row hash = config.value("model_hash", results::Row());
  for (const results::Row& row : rows) {
    if (row["kind"] != "scores" || row.value("model_hash", results::Row()) != hash) continue;
    const std::string command = row.value("command", "");
    if (!command.starts_with(eval)) continue;
    return command.substr(eval.size(), command.find(" --") - eval.size());
  }
  return shell_command({config.value("run", "run")});
}

// Every setting of a config row spelt out: settings have the names of options.
std::string train_command(const results::Row& config, const std::string& folder) {
  std::vector<std::string> words;
  const results::Row settings = config.value("config", results::Row::object());
  for (const auto& [name, value] : settings.items()) {
    const std::string option = "--" + name;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_boolean()) {
      words.push_back(option + "=" + text);
    } else if (value.is_array() && !value.empty()) {
      std::vector<std::string> entries;
      for (const results::Row& entry : value) entries.push_back(entry.dump());
      words.insert(words.end(), {option, joined(entries, ",")});
    } else if (!value.is_array() && !text.empty()) {
      words.insert(words.end(), {option, text});
    }
  }
  return "qact train --output " + folder + " " + shell_command(words);
}

std::string report_command(const ReportCommand& command) {
  std::vector<std::string> words = {"qact", "report"};
  for (const fs::path& run : command.runs) words.push_back(run.string());
  words.insert(words.end(), {"--output", command.output.string(), "--title", command.title});
  if (!command.figures.empty()) words.insert(words.end(), {"--figures", command.figures});
  if (!command.data_dir.empty()) words.insert(words.end(), {"--data-dir", command.data_dir});
  if (!command.where.empty()) words.insert(words.end(), {"--where", joined(command.where, ",")});
  if (command.no_sheet) words.emplace_back("--no-sheet");
  return shell_command(words);
}

// Rows of `qact eval` name the command that made them; these are the ones before and after it.
void add_commands(results::Rows& rows, const ReportCommand& command) {
  for (results::Row& row : rows) {
    if (row["kind"] == "config") row["command"] = train_command(row, trained_in(rows, row));
  }
  rows.push_back({{"kind", "report"}, {"command", report_command(command)}});
}

// One test image of the dataset under every corruption that its rows name.
results::Row contact_sheet(const std::string& dataset, const std::vector<std::string>& corruptions,
                           const std::string& data_dir) {
  const data::Dataset opened = data::open_dataset(dataset, data::data_folder(data_dir));
  const data::Split split = opened.read({.split = data::SplitName::test});
  image::Image image(split.size);
  std::copy_n(split.image(0), split.size.values(), image.pixels.begin());
  const image::Image sheet =
      corrupt::contact_sheet(image, corruptions, {1, 2, 3, 4, 5}, 0, nullptr);
  return {{"kind", "contact_sheet"},
          {"caption", "A test image of " + dataset + " under each corruption, severities 1 to 5."},
          {"png", report::base64(image::encode_png(sheet))}};
}

// Whether one image alone shows it: a name of the corruptions' table.
bool is_effect(const std::string& name) {
  const auto all = corrupt::corruptions();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
}

// Sheets for all datasets that can be read here; the page does without the others.
void add_sheets(results::Rows& rows, const std::string& data_dir) {
  std::vector<std::pair<std::string, std::vector<std::string>>> wanted;
  for (const results::Score& score : results::scores(rows)) {
    const std::string& dataset = score.setting.dataset;
    auto found = std::find_if(wanted.begin(), wanted.end(),
                              [&](const auto& entry) { return entry.first == dataset; });
    if (found == wanted.end()) found = wanted.insert(found, {dataset, {}});
    auto& names = found->second;
    const bool listed = std::find(names.begin(), names.end(), score.corruption) != names.end();
    if (is_effect(score.corruption) && !listed) names.push_back(score.corruption);
  }
  for (const auto& [dataset, corruptions] : wanted) {
    if (corruptions.empty()) continue;
    try {
      rows.push_back(contact_sheet(dataset, corruptions, data_dir));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "qact: no contact sheet of %s: %s\n", dataset.c_str(), error.what());
    }
  }
}

// What was left out of the comparison, on a line each.
void print_notes(const std::vector<report::Group>& groups) {
  for (const report::Group& group : groups) {
    for (const std::string& note : group.notes) {
      std::fprintf(stderr, "qact: %s: %s\n", group.title().c_str(), note.c_str());
    }
  }
}

void run_report(const ReportCommand& command) {
  results::Rows rows = results::where(read_all(command.runs), results::parse_where(command.where));
  if (command.json) {
    print_notes(report::groups(rows));
    print(report::means(rows).dump(2) + "\n");
    return;
  }
  const fs::path output = base::destination(command.output);
  if (!command.no_sheet) add_sheets(rows, command.data_dir);
  const std::vector<report::Chart> charts = report::make_charts(rows);
  if (charts.empty()) {
    std::set<std::string> kinds;
    for (const results::Row& row : rows) kinds.insert(row["kind"].get<std::string>());
    throw std::runtime_error(
        "[report] expected rows to draw (scores, tsne, histogram, toy_score, "
        "...), got only these kinds: " +
        joined(kinds, ", "));
  }
  const size_t drawn = rows.size();
  add_commands(rows, command);
  const InterruptGuard guard;  // all of it is written, which takes no time, or nothing
  if (!command.figures.empty()) report::write_charts(command.figures, rows);
  if (output.has_parent_path()) fs::create_directories(output.parent_path());
  base::write_atomically(output, report::make_page(command.title, rows));
  const std::vector<report::Group> groups = report::groups(rows);
  print_notes(groups);
  if (command.summary) {
    for (const report::Group& group : groups) {
      if (groups.size() > 1) std::printf("%s\n", group.title().c_str());
      for (const std::string& line : report::verdict(group)) std::printf("%s\n", line.c_str());
    }
  }
  std::printf("%zu charts of %zu rows: the report is %s\n", charts.size(), drawn,
              command.output.c_str());
}

}  // namespace

void setup_report(CLI::App& app) {
  auto report = std::make_shared<ReportCommand>();
  CLI::App* command = app.add_subcommand("report", "Draw results as one self-contained page");
  command->option_defaults()->always_capture_default();
  command->add_option("runs", report->runs, "Folders of runs, or results.jsonl files")->required();
  command->add_option("-o,--output", report->output, "File of the page");
  command->add_option("--title", report->title, "Heading of the page");
  command->add_option("--figures", report->figures,
                      "Folder: also write each chart there, as Vega-Lite and as CSV");
  command->add_option("--data-dir", report->data_dir,
                      "Folder of the datasets, for the contact sheet; default: $QACT_DATA, else "
                      "~/.cache/qact");
  command->add_flag("--no-sheet", report->no_sheet, "Leave out the contact sheet of corruptions");
  add_list(*command, "--where", report->where,
           "Only evaluations with KEY=VALUE, a field of results or an option of training: "
           "mode=batch,lr=0.01; several values of one key mean any of them");
  command->add_flag("--summary", report->summary,
                    "Also print how QAct compares with the baselines");
  command->add_flag("--json", report->json, "Print the means as JSON, and write no page");
  command->callback([report] {
    check_use([&] { results::parse_where(report->where); });
    run_report(*report);
  });
}

}  // namespace qact::cli
