#include "qact/results/row.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "qact/base/atomic_file.h"
#include "qact/base/fail.h"
#include "qact/base/regular_file.h"

namespace qact::results {
namespace {

bool is_row(const Row& row) {
  return row.is_object() && row.contains("kind") && row["kind"].is_string();
}

std::string read_text(const std::filesystem::path& path) {
  base::expect_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    base::fail("results", "expected a readable file, got ", path.string());
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::string shortened(std::string_view line) {
  constexpr size_t kMaxLength = 60;
  return std::string(line.substr(0, kMaxLength)) + (line.size() > kMaxLength ? "..." : "");
}

Rows parse_rows(std::string_view text, const std::string& name) {
  Rows rows;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Row row = Row::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!is_row(row)) {
      base::fail("results", name, ":", number, ": expected a JSON object with a \"kind\", got ",
                 shortened(line));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows read_rows(const std::filesystem::path& path) {
  return parse_rows(read_text(path), path.string());
}

Rows read_rows_so_far(const std::filesystem::path& path, size_t& incomplete_line) {
  std::string text = read_text(path);
  incomplete_line = 0;
  const size_t last = text.rfind('\n') + 1;  // npos + 1 = 0
  if (!is_row(Row::parse(text.substr(last), nullptr, false)) && last < text.size()) {
    text.resize(last);
    incomplete_line = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  }
  return parse_rows(text, path.string());
}

std::string format_rows(const Rows& rows) {
  std::string text;
  for (const Row& row : rows) {
    if (!is_row(row)) {
      throw std::invalid_argument("[results] expected a row with a \"kind\", got " +
                                  shortened(row.dump()));
    }
    text += row.dump() + "\n";
  }
  return text;
}

void write_rows(const std::filesystem::path& path, const Rows& rows) {
  base::write_atomically(path, format_rows(rows));
}

void refuse_field(const Row& row, const char* key) {
  base::fail("results", "expected a row with a fitting \"", key, "\", got ", shortened(row.dump()));
}

Rows of_kind(const Rows& rows, std::string_view kind) {
  Rows found;
  for (const Row& row : rows) {
    if (row["kind"] == kind) found.push_back(row);
  }
  return found;
}

}  // namespace qact::results
