#include "qact/report/curves.h"
#include "qact/report/paper.h"
#include "qact/report/sections.h"

namespace qact::report {
namespace {

Table drop_table(const Group& group) {
  Table table{.columns = {{"network"}}, .rows = {}};
  for (int from = 0; from < group.max_severity; ++from) {
    for (int to = from + 1; to <= group.max_severity; ++to) {
      table.columns.push_back({std::to_string(from) + "→" + std::to_string(to), true});
    }
  }
  for (const Curve& curve : group.curves) {
    std::vector<std::string> row = {curve.label};
    for (int from = 0; from < group.max_severity; ++from) {
      for (int to = from + 1; to <= group.max_severity; ++to) {
        row.push_back(fixed(100 * curve.drop("accuracy", from, to, group.corruptions).mean, 2));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

// The paper's tables 1 to 3.
std::vector<Block> drop_tables(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.max_severity == 0 || group.corruptions.empty()) continue;
    Table table = drop_table(group);
    const std::vector<PaperDrop> theirs = paper_drops(group.dataset);
    for (const PaperDrop& drop : theirs) {
      std::vector<std::string> row = {std::string("paper: ") + drop.network};
      for (size_t c = 1; c < table.columns.size(); ++c) {
        row.push_back(c <= drop.drops.size() ? fixed(drop.drops[c - 1], 2) : "");
      }
      table.rows.push_back(std::move(row));
    }
    table.caption = "Percentage points, mean of " + std::to_string(group.corruptions.size()) +
                    " corruptions and of all seeds. ";
    table.caption += theirs.empty() ? "The paper has no such table for this dataset."
                                    : "Rows that begin with \"paper\" are printed there; they "
                                      "were measured on the published files.";
    blocks.push_back(Heading{group.title()});
    blocks.push_back(std::move(table));
  }
  return blocks;
}

}  // namespace qact::report
