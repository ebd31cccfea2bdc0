#include <algorithm>

#include "qact/report/sections.h"

namespace qact::report {
namespace {

std::string plain(const results::Row& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const results::Row& entry : value) list += (list.empty() ? "" : ", ") + plain(entry);
  return list;
}

// The commands of all rows, each once.
std::vector<std::string> commands(const results::Rows& rows) {
  std::vector<std::string> all;
  for (const results::Row& row : rows) {
    if (row["kind"] == "run" || !row.contains("command")) continue;
    const std::string command = plain(row["command"]);
    if (std::find(all.begin(), all.end(), command) == all.end()) all.push_back(command);
  }
  return all;
}

// Which textures the rows of frost were made with; they are not the same corruption.
std::vector<std::string> frosts(const results::Rows& rows) {
  std::vector<std::string> all;
  for (const results::Row& row : rows) {
    if (!row.contains("frost") || !row["frost"].is_string()) continue;
    const std::string name = plain(row["frost"]);
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  return all;
}

}  // namespace

// The command and the configuration of every run whose rows are on the page. kinds: run, and
// config for a trained network.
std::vector<Block> provenance(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const std::string& name : frosts(rows)) {
    blocks.push_back(Text{"Frost was made with these textures: " + name + "."});
  }
  for (const std::string& command : commands(rows)) blocks.push_back(Code{command});
  for (const results::Row& row : results::of_kind(rows, "config")) {
    std::string title = "Configuration of " + plain(row.value("run", results::Row("a run")));
    if (row.contains("model_hash")) title += ", model " + plain(row["model_hash"]);
    blocks.push_back(Code{row.value("config", results::Row::object()).dump(2), title});
  }
  for (const results::Row& row : results::of_kind(rows, "run")) {
    blocks.push_back(Code{plain(row.at("command"))});
    Table table{.columns = {{"setting"}, {"value"}}, .rows = {}};
    for (const auto& [key, value] : row.items()) {
      if (key == "kind" || key == "command") continue;
      table.rows.push_back({key, plain(value)});
    }
    blocks.push_back(std::move(table));
  }
  return blocks;
}

}  // namespace qact::report
