// Rows of results: JSON objects, one per line, each with a `kind` that says what it holds.
// They are all that a run and its report share.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qact::results {

// Keys stay in the order in which they were set: a file is read by people too.
using Row = nlohmann::ordered_json;
using Rows = std::vector<Row>;

// Blank lines are skipped. A damaged line is an error that names it: `name`:line.
Rows parse_rows(std::string_view text, const std::string& name);
Rows read_rows(const std::filesystem::path& path);

// As read_rows, of a file that may still be written to: a last line that is not whole is left
// out, and `torn` tells its number; 0 where all lines are whole.
Rows read_rows_so_far(const std::filesystem::path& path, size_t& torn);

std::string format_rows(const Rows& rows);
void write_rows(const std::filesystem::path& path, const Rows& rows);

Rows of_kind(const Rows& rows, std::string_view kind);

// The row's start, for messages.
std::string shortened(std::string_view line);

// Throws: the row has no such field, or one that does not fit.
[[noreturn]] void refuse_field(const Row& row, const char* key);

// A field that the row must have, of this type; else an error that names row and field.
template <class T>
T field(const Row& row, const char* key) {
  try {
    return row.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    refuse_field(row, key);
  }
}

}  // namespace qact::results
