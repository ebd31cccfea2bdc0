#include "cli/did_you_mean.h"

#include <algorithm>

#include "cli/error_message.h"
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

const std::string& closest(const std::vector<std::string>& names, const std::string& word) {
  return *std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return distance(a, word) < distance(b, word);
  });
}

bool similar(const std::string& name, const std::string& word) {
  return distance(name, word) <= (word.size() > 3 ? 2 : 1);
}

std::string no_such_command(const CLI::App& app, const std::string& path, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string& best = closest(names, word);
  return "qact: there is no command '" + path + " " + word + "'" +
         (similar(best, word) ? ", did you mean '" + path + " " + best + "'?" : "") +
         "\nexpected one of " + joined(names, ", ") + "; `" + path + " --help` says more\n";
}

// An option that holds all of the word (--data-seed for --seed), else one that differs in a letter
// or two; empty where there is neither.
std::string similar_option(const CLI::App& command, const std::string& word) {
  std::vector<std::string> longer, alike;
  const std::string stem = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (stem.size() > 2 && name.find(stem) != std::string::npos) longer.push_back(name);
      if (similar(name, stem)) alike.push_back(name);
    }
  }
  for (const auto& names : {longer, alike}) {
    if (!names.empty()) return "--" + closest(names, stem);
  }
  return "";
}

}  // namespace

std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* last = &app;
  std::string before, path = app.get_name();
  for (const std::string& word : words) {
    const auto commands = commands_of(*last);
    if (commands.empty() || word.starts_with("-")) return "";
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* c) { return c->get_name() == word; });
    if (named == commands.end()) return no_such_command(*last, path, word);
    last = *named;
    before = path;
    path += " " + word;
  }
  return commands_of(*last).empty() ? "" : last->help(before);
}

std::string unknown_option(const CLI::App& app) {
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!word.starts_with("-")) continue;
    const std::string option = word.substr(0, word.find('='));
    const std::string meant = similar_option(parsed_command(app), option);
    return "there is no option '" + option + "' of '" + command_path(app) + "'" +
           (meant.empty() ? "" : ", did you mean '" + meant + "'?");
  }
  return "";
}

}  // namespace qact::cli
