// qact data: lists, fetches, describes and checks datasets.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "qact/data/check.h"
#include "qact/data/fetch.h"
#include "qact/data/frost.h"

namespace qact::cli {
namespace {

using data::DatasetInfo;
using json = nlohmann::ordered_json;

struct DataCommand {
  std::vector<std::string> names;
  std::string data_dir;
  bool json = false;
  data::Preprocessing fit;
};

std::string state(const DatasetInfo& dataset, const std::filesystem::path& folder) {
  if (dataset.embedded) return "built in";
  if (dataset.sources.empty()) return "here";  // a custom one
  return data::is_present(dataset, folder) ? "here" : "can be fetched";
}

json describe(const DatasetInfo& dataset, const std::filesystem::path& folder) {
  json sources = json::array();
  for (const data::Source& source : dataset.sources) {
    json sums = json::array();
    for (const data::Download& file : source.downloads) sums.push_back(file.digest);
    if (!source.digest.empty()) sums.push_back(source.digest);
    sources.push_back({{"from", data::source_name(source)}, {"checksums", sums}});
  }
  return {{"name", dataset.name},
          {"title", dataset.title},
          {"state", state(dataset, folder)},
          {"height", dataset.size.height},
          {"width", dataset.size.width},
          {"channels", dataset.size.channels},
          {"classes", dataset.classes},
          {"class_names", dataset.class_names},
          {"train", dataset.train},
          {"test", dataset.test},
          {"mean", dataset.normalisation.mean},
          {"std", dataset.normalisation.std},
          {"corruption_of", dataset.clean},
          {"corruptions", dataset.corruptions},
          {"severities", dataset.severities},
          {"sources", sources}};
}

void print_table(const report::Table& table) { print(to_text(table)); }

void list(const DataCommand& command) {
  const auto folder = data::data_folder(command.data_dir);
  json rows = json::array();
  report::Table table{{{"name"}, {"images", true}, {"size"}, {"classes", true}, {"state"}}, {}};
  for (const DatasetInfo& dataset : data::datasets()) {
    const json row = describe(dataset, folder);
    rows.push_back(row);
    const auto& [height, width, channels] = dataset.size;
    table.rows.push_back(
        {dataset.name, std::to_string(dataset.train) + " + " + std::to_string(dataset.test),
         std::to_string(width) + "x" + std::to_string(height) + "x" + std::to_string(channels),
         std::to_string(dataset.classes), state(dataset, folder)});
  }
  if (command.json) {
    print(rows.dump(2) + "\n");
    return;
  }
  print_table(table);
  const std::string frost = data::frost_request().name;
  std::printf("\nThe folder of data is %s. The official textures of the corruption frost %s.\n",
              folder.c_str(),
              std::filesystem::is_directory(folder / frost)
                  ? "are here"
                  : "can be fetched, too (`qact data fetch frost`)");
}

void fetch(const DataCommand& command) {
  const auto folder = data::data_folder(command.data_dir);
  const data::FetchRequest frost = data::frost_request();
  for (const std::string& name : command.names) {
    if (name != frost.name) check_use([&] { data::find_dataset(name); });
  }
  const InterruptGuard guard;
  for (const std::string& name : command.names) {
    std::unique_ptr<ProgressBar> bar;
    data::FetchEvents events;
    events.trying = [&](const std::string& from) {
      bar.reset();
      std::fprintf(stderr, "%s: trying %s\n", name.c_str(), from.c_str());
      bar = std::make_unique<ProgressBar>(name);
    };
    events.failed = [&](const std::string&, const std::string& why) {
      bar.reset();
      std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
    };
    events.progress = [&](int64_t done, int64_t total) {
      if (total > 0 && bar) bar->show(static_cast<double>(done) / static_cast<double>(total));
      return !guard.interrupted();
    };
    events.waiting = [&](const std::string& who) {
      std::fprintf(stderr, "%s: waiting for %s, which fetches into %s\n", name.c_str(), who.c_str(),
                   folder.c_str());
    };
    const std::string from = name == frost.name
                                 ? data::fetch(frost, folder, events)
                                 : data::fetch(data::find_dataset(name), folder, events);
    bar.reset();
    if (from.empty()) {
      std::printf("%s: already here\n", name.c_str());
    } else {
      std::printf("%s: from %s, in %s\n", name.c_str(), from.c_str(), (folder / name).c_str());
    }
  }
}

void info(const DataCommand& command) {
  const auto folder = data::data_folder(command.data_dir);
  const std::string& name = command.names[0];
  check_dataset_name(name);
  const bool custom = name.find('/') != std::string::npos;
  const DatasetInfo dataset =
      custom ? data::open_dataset(name, folder, command.fit).info : data::find_dataset(name);
  const json row = describe(dataset, folder);
  if (command.json) {
    print(row.dump(2) + "\n");
    return;
  }
  for (const auto& [key, value] : row.items()) {
    if (value.empty() || value == "" || value == 0 || key == "sources") continue;
    std::printf("%-14s %s\n", key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
  for (const json& source : row["sources"]) {
    std::printf("%-14s %s", "source", source["from"].get<std::string>().c_str());
    for (const json& sum : source["checksums"]) {
      const auto text = sum.get<std::string>();
      std::printf("\n%-16s %s", "",
                  text.empty() ? "no published checksum: counted instead" : text.c_str());
    }
    std::printf("\n");
  }
}

void check(const DataCommand& command) {
  check_dataset_name(command.names[0]);
  const auto opened =
      data::open_dataset(command.names[0], data::data_folder(command.data_dir), command.fit);
  json rows = json::array();
  report::Table table{{{opened.info.name}, {"expected"}, {"found"}, {""}}, {}};
  int wrong = 0;
  for (const data::Finding& finding : data::check(opened)) {
    rows.push_back({{"what", finding.what},
                    {"expected", finding.expected},
                    {"found", finding.found},
                    {"good", finding.good}});
    table.rows.push_back(
        {finding.what, finding.expected, finding.found, finding.good ? "good" : "WRONG"});
    wrong += !finding.good;
  }
  if (command.json) {
    print(json{{"dataset", opened.info.name}, {"findings", rows}}.dump(2) + "\n");
  } else {
    print_table(table);
  }
  if (wrong > 0) {
    throw std::runtime_error(opened.info.name + ": " + std::to_string(wrong) +
                             " of the findings are not as expected");
  }
}

}  // namespace

void setup_data(CLI::App& app) {
  auto command = std::make_shared<DataCommand>();
  CLI::App* group = app.add_subcommand("data", "List, fetch, describe and check datasets");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* about, void (*run)(const DataCommand&)) {
    CLI::App* sub = group->add_subcommand(name, about);
    sub->add_option("--data-dir", command->data_dir,
                    "Folder of the datasets; default: $QACT_DATA, else ~/.cache/qact");
    sub->callback([command, run] { run(*command); });
    return sub;
  };
  const auto add_json = [&](CLI::App* sub) {
    sub->add_flag("--json", command->json, "Print as JSON");
  };
  const auto add_name = [&](CLI::App* sub) {
    sub->add_option("name", command->names, "Name of a dataset, or path of a custom one, with a /")
        ->required()
        ->expected(1);
    sub->add_option("--resize", command->fit.resize,
                    "Custom dataset: resize the shorter side of images to this")
        ->check(between(0, 1 << 16));
    sub->add_option("--crop", command->fit.crop,
                    "Custom dataset: crop the middle of images to this side")
        ->check(between(0, 1 << 16));
  };
  add_json(add("list", "All datasets, and which are here", list));
  add("fetch", "Download datasets from their public sources", fetch)
      ->add_option("names", command->names,
                   "Names of datasets, or frost: the official textures of that corruption")
      ->required();
  CLI::App* about = add("info", "Sizes, classes, normalisation and sources", info);
  add_name(about);
  add_json(about);
  CLI::App* verify = add("check", "Counts, class balance, mean and deviation", check);
  add_name(verify);
  add_json(verify);
}

}  // namespace qact::cli
