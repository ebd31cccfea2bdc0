#include "cli/text.h"

#include <algorithm>

namespace qact::cli {
namespace {

// Characters of a UTF-8 text, not its bytes.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string line(const std::vector<std::string>& cells, const report::Table& table,
                 const std::vector<size_t>& widths) {
  std::string text;
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::string space(widths[c] - width(cells[c]), ' ');
    text += c > 0 ? "  " : "";
    text += table.columns[c].numeric ? space + cells[c] : cells[c] + space;
  }
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string to_text(const report::Table& table) {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const auto& column : table.columns) {
    titles.push_back(column.title);
    widths.push_back(width(column.title));
  }
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string text = line(titles, table, widths);
  for (const auto& row : table.rows) text += line(row, table, widths);
  return text;
}

std::string shell_command(const std::vector<std::string>& words) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string command;
  for (const std::string& word : words) {
    command += command.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? "'\\''" : std::string(1, c);
    command += '\'';
  }
  return command;
}

}  // namespace qact::cli
