// Sections and blocks of the page. A section turns rows into blocks and knows nothing of HTML;
// html.h turns blocks into HTML and knows nothing of rows. A new section is a source file, a
// declaration below and a line in sections.cpp.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "qact/results/row.h"

namespace qact::report {

// A paragraph of plain text, as all strings here.
struct Text {
  std::string text;
};

// A heading within a section.
struct Heading {
  std::string text;
};

// Collapsed under its title where it has one.
struct Code {
  std::string text, title = "";
};

struct Image {
  std::string caption;
  std::string png;  // the file in base64
};

struct Table {
  struct Column {
    std::string title;
    bool numeric = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::string caption = "";
};

// A Vega-Lite specification, made with chart.h. `name` is unique on the page and names
// the files that the chart is saved to.
struct Chart {
  std::string name, caption;
  nlohmann::ordered_json spec;
};

using Block = std::variant<Text, Heading, Code, Table, Chart, Image>;

struct Section {
  const char* name;
  const char* title;
  const char* intro;  // a paragraph above the blocks; may be empty
  // Empty where there are no rows for this section: the page then leaves it out.
  std::vector<Block> (*make)(const results::Rows& rows);
};

// In the order of the page.
std::span<const Section> sections();

// Each in the source file of its name.
std::vector<Block> summary(const results::Rows& rows);
std::vector<Block> severities(const results::Rows& rows);
std::vector<Block> heat_maps(const results::Rows& rows);
std::vector<Block> drop_tables(const results::Rows& rows);
std::vector<Block> tone(const results::Rows& rows);
std::vector<Block> reliability(const results::Rows& rows);
std::vector<Block> embeddings(const results::Rows& rows);
std::vector<Block> distributions(const results::Rows& rows);
std::vector<Block> contact_sheets(const results::Rows& rows);
std::vector<Block> toy_circle(const results::Rows& rows);
std::vector<Block> toy_monotone(const results::Rows& rows);
std::vector<Block> provenance(const results::Rows& rows);

}  // namespace qact::report
