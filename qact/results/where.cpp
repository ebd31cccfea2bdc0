#include "qact/results/where.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

namespace qact::results {
namespace {

std::string text_of(const Row& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "none";
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Row& entry : value) list += (list.empty() ? "" : " ") + text_of(entry);
  return list;
}

// Options are written with "-", fields with "_": to people they are the same.
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const std::set<std::string>& row_keys() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    const Evaluation any;
    visit_fields(any, [&](const char* name, const auto&, Role) { all.insert(name); });
    return all;
  }();
  return names;
}

std::vector<Field> listed(const Row& row, const Training& training) {
  std::vector<Field> all;
  for (const auto& [name, value] : row.items()) {
    if (name != "training") all.push_back({name, text_of(value)});
  }
  for (Field& field : fields_of(training)) all.push_back(std::move(field));
  return all;
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == 0 && *end_b == 0 && x == y;
}

const Field* find(const std::vector<Field>& fields, const std::string& key) {
  const std::string wanted = key_of(key);
  for (const Field& field : fields) {
    const std::string own = key_of(field.name);
    if (own == wanted || (field.training && "train." + own == wanted)) return &field;
  }
  return nullptr;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

struct Candidate {
  size_t row;
  std::vector<Field> fields;
};

void keep(std::vector<Candidate>& candidates, const Condition& condition, std::string& before) {
  std::set<std::string> names, values;
  bool known = false;
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    for (const Field& field : candidate.fields) names.insert(field.name);
    const Field* const field = find(candidate.fields, condition.key);
    if (!field) continue;
    known = true;
    values.insert(field->value);
    // Images without frost are the same whatever its textures.
    const bool fits = (field->name == "frost" && field->value == "none") ||
                      std::any_of(condition.values.begin(), condition.values.end(),
                                  [&](const auto& v) { return same_value(v, field->value); });
    if (fits) kept.push_back(std::move(candidate));
  }
  if (!known) {
    throw std::runtime_error("[report] expected --where to name one of " + listed(names) +
                             ", got '" + condition.key + "'");
  }
  const std::string asked =
      condition.key + "=" + listed({condition.values.begin(), condition.values.end()});
  if (kept.empty()) {
    throw std::runtime_error(
        "[report] expected --where to leave rows of an evaluation, got none "
        "with " +
        asked + before + ": there is " + condition.key + "=" + listed(values));
  }
  before += (before.empty() ? " among those with " : ", ") + asked;
  candidates = std::move(kept);
}

}  // namespace

std::vector<Field> fields_of(const Training& training) {
  std::vector<Field> all;
  const Row options = Row::parse(training.json);
  for (const auto& [name, value] : options.items()) {
    const bool taken = row_keys().contains(key_of(name));
    all.push_back({(taken ? "train." : "") + name, text_of(value), true});
  }
  return all;
}

std::vector<Field> fields_of(const Evaluation& evaluation) {
  return listed(to_row(evaluation), evaluation.setting.training);
}

std::vector<Field> fields_of(const Setting& setting) {
  std::set<std::string> names;
  visit_setting(setting, [&](const char* name, const auto&, Role) { names.insert(name); });
  Evaluation evaluation;
  evaluation.setting = setting;
  Row row = to_row(evaluation), own;
  for (const auto& [name, value] : row.items()) {
    if (names.contains(name)) own[name] = value;
  }
  return listed(own, setting.training);
}

std::vector<Condition> parse_where(const std::vector<std::string>& words) {
  std::vector<Condition> all;
  for (const std::string& word : words) {
    const size_t at = word.find('=');
    if (at == 0 || (at == std::string::npos && all.empty()) || word.empty()) {
      throw std::invalid_argument("[report] expected --where KEY=VALUE, got '" + word + "'");
    }
    if (at == std::string::npos) {
      all.back().values.push_back(word);
      continue;
    }
    const std::string key = word.substr(0, at);
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Condition& c) { return key_of(c.key) == key_of(key); });
    if (found == all.end()) found = all.insert(all.end(), {key, {}});
    found->values.push_back(word.substr(at + 1));
    std::rotate(found, found + 1, all.end());  // what follows without a key is this one's
  }
  return all;
}

Rows where(const Rows& rows, const std::vector<Condition>& conditions) {
  if (conditions.empty()) return rows;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_evaluation(rows[i])) candidates.push_back({i, fields_of(evaluation_of(rows[i]))});
  }
  if (candidates.empty()) {
    throw std::runtime_error("[report] expected rows of an evaluation for --where, got none");
  }
  std::string before;
  for (const Condition& condition : conditions) keep(candidates, condition, before);
  std::set<size_t> chosen;
  std::set<std::string> models;
  for (const Candidate& candidate : candidates) {
    chosen.insert(candidate.row);
    models.insert(rows[candidate.row]["model_hash"].get<std::string>());
  }
  Rows left;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool gone = is_evaluation(row) ? !chosen.contains(i)
                                         : row["kind"] == "config" &&
                                               !models.contains(row.value("model_hash", ""));
    if (!gone) left.push_back(row);
  }
  return left;
}

}  // namespace qact::results
