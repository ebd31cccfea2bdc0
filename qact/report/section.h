// What the page is made of. A section turns rows into blocks and knows nothing of HTML;
// the page knows nothing of rows. A new section is one file and one line in sections.cpp.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "qact/results/row.h"

namespace qact::report {

// A paragraph; plain text, as all strings here.
struct Text {
  std::string text;
};

struct Code {
  std::string text;
};

struct Table {
  struct Column {
    std::string title;
    bool numeric = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// A Vega-Lite specification, made with chart.h. `name` is unique on the page and names
// the files that the chart is saved to.
struct Chart {
  std::string name, caption;
  nlohmann::ordered_json spec;
};

using Block = std::variant<Text, Code, Table, Chart>;

struct Section {
  const char* name;
  const char* title;
  // Nothing where the rows hold nothing for this section: it is then left out.
  std::vector<Block> (*make)(const results::Rows& rows);
};

// In the order of the page.
std::span<const Section> sections();

std::vector<Block> toy_circle(const results::Rows& rows);
std::vector<Block> toy_monotone(const results::Rows& rows);
std::vector<Block> provenance(const results::Rows& rows);

}  // namespace qact::report
