// Rows of results: JSON objects, one per line, each with a `kind` that says what it holds.
// They are all that a run and its report share.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
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

std::string format_rows(const Rows& rows);
void write_rows(const std::filesystem::path& path, const Rows& rows);

Rows of_kind(const Rows& rows, std::string_view kind);

}  // namespace qact::results
