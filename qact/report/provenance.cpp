#include "qact/report/section.h"

namespace qact::report {
namespace {

std::string plain(const results::Row& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const results::Row& entry : value) list += (list.empty() ? "" : ", ") + plain(entry);
  return list;
}

}  // namespace

// The command and the configuration of every run whose rows are on the page. kind: run.
std::vector<Block> provenance(const results::Rows& rows) {
  std::vector<Block> blocks;
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
