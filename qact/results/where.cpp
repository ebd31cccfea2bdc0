#include "qact/results/where.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "qact/base/fail.h"
#include "qact/results/evaluation.h"
#include "qact/results/fields.h"

namespace qact::results {
namespace {

using base::fail;

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == 0 && *end_b == 0 && x == y;
}

const Field* find(const std::vector<Field>& fields, const std::string& key) {
  const std::string wanted = key_of(key);
  for (const Field& field : fields) {
    const std::string name = key_of(field.name);
    if (name == wanted || (field.training && "train." + name == wanted)) return &field;
  }
  return nullptr;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

struct Candidate {
  size_t row;
  std::vector<Field> fields;
};

// Keeps the candidates that fit. `earlier` lists the conditions before, for messages.
void filter(std::vector<Candidate>& candidates, const Condition& condition, std::string& earlier) {
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
    fail("report", "expected --where to name one of ", joined(names), ", got '", condition.key,
         "'");
  }
  const std::string asked =
      condition.key + "=" + joined({condition.values.begin(), condition.values.end()});
  if (kept.empty()) {
    fail("report", "expected --where to leave rows of an evaluation, got none with ", asked,
         earlier, ": there is ", condition.key, "=", joined(values));
  }
  earlier += (earlier.empty() ? " among those with " : ", ") + asked;
  candidates = std::move(kept);
}

}  // namespace

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
    fail("report", "expected rows of an evaluation for --where, got none");
  }
  std::string earlier;
  for (const Condition& condition : conditions) filter(candidates, condition, earlier);
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
