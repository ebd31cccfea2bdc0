// Results as JSON lines: one object per line, each with a `kind` that says what it holds. They are
// the only interface between a run and its report.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qact::results {

// Keys keep the order in which they were set, for people who read the file.
using Row = nlohmann::ordered_json;
using Rows = std::vector<Row>;

// Blank lines are skipped. A damaged line is an error that names it: `name`:line.
Rows parse_rows(std::string_view text, const std::string& name);
Rows read_rows(const std::filesystem::path& path);

// As read_rows(), for a file that is still being written: an incomplete last line is skipped, and
// `incomplete_line` is set to its number, or to 0.
Rows read_rows_so_far(const std::filesystem::path& path, size_t& incomplete_line);

std::string format_rows(const Rows& rows);
void write_rows(const std::filesystem::path& path, const Rows& rows);

Rows of_kind(const Rows& rows, std::string_view kind);

// The start of a line, for messages.
std::string shortened(std::string_view line);

// Throws: the row lacks the field, or it has the wrong type.
[[noreturn]] void refuse_field(const Row& row, const char* key);

// A field that the row must have, of this type. Throws, and names row and field.
template <class T>
T field(const Row& row, const char* key) {
  try {
    return row.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    refuse_field(row, key);
  }
}

}  // namespace qact::results
