#include "cli/command_names.h"

#include <algorithm>

#include "cli/text.h"

namespace qact::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The fewest letters to insert, leave out, replace or swap with their neighbour.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replaced = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string unknown_command(const CLI::App& app, const std::string& path, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const auto closest = std::min_element(names.begin(), names.end(), [&](auto& a, auto& b) {
    return distance(a, word) < distance(b, word);
  });
  const bool similar = distance(*closest, word) <= 2;
  return "qact: there is no command '" + path + " " + word + "'" +
         (similar ? ", did you mean '" + path + " " + *closest + "'?" : "") + "\nexpected one of " +
         joined(names, ", ") + "; `" + path + " --help` says more\n";
}

}  // namespace

std::string wrong_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* last = &app;
  std::string before, path = app.get_name();
  for (const std::string& word : words) {
    const auto commands = commands_of(*last);
    if (commands.empty() || word.starts_with("-")) return "";
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* c) { return c->get_name() == word; });
    if (named == commands.end()) return unknown_command(*last, path, word);
    last = *named;
    before = path;
    path += " " + word;
  }
  return commands_of(*last).empty() ? "" : last->help(before);
}

}  // namespace qact::cli
