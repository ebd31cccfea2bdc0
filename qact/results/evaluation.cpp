#include "qact/results/evaluation.h"

#include <limits>
#include <set>
#include <tuple>

namespace qact::results {
namespace {

template <class T>
Row written(const T& value) {
  return value;
}
template <class T>
Row written(const std::optional<T>& value) {
  return value ? Row(*value) : Row(nullptr);
}
Row written(const Training& training) { return Row::parse(training.json); }

template <class T>
void read(const Row& row, const char* name, T& value) {
  value = field<T>(row, name);
}
template <class T>
void read(const Row& row, const char* name, std::optional<T>& value) {
  if (!row.contains(name) || !row[name].is_null()) value = field<T>(row, name);
}
void read(const Row& row, const char* name, Training& value) {
  if (!row.contains(name) || !row[name].is_object()) refuse_field(row, name);
  value.json = row[name].dump();
}

const std::set<std::string>& field_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    Evaluation any;
    visit_fields(any, [&](const char* name, auto&, Role) { all.insert(name); });
    return all;
  }();
  return names;
}

Score score_of(const Evaluation& e, const Row& row) {
  if (!e.severity) refuse_field(row, "severity");
  Score score{.setting = e.setting,
              .corruption = e.corruption,
              .severity = *e.severity,
              .seed = e.seed,
              .n = field<int64_t>(row, "n"),
              .values = {}};
  field<double>(row, "accuracy");  // all else may be missing
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() && !field_names().contains(key)) score.values[key] = value.get<double>();
  }
  return score;
}

[[noreturn]] void refuse_two(const Row& first, const Row& second) {
  const auto say = [](const Row& row) {
    return row["accuracy"].dump() + " (by " + row.value("command", "no command") + ", " +
           row.value("versions", Row::object()).dump() + ")";
  };
  throw std::runtime_error("[results] expected one accuracy of model " +
                           first["model_hash"].dump() + " under " + first["corruption"].dump() +
                           " of severity " + first["severity"].dump() + ", got " + say(first) +
                           " and " + say(second) + ": leave one of them out");
}

}  // namespace

Row to_row(const Evaluation& evaluation) {
  Row row;
  visit_fields(evaluation, [&](const char* name, const auto& value, Role role) {
    Row entry = written(value);
    if (role != Role::part || !entry.is_null()) row[name] = std::move(entry);
  });
  return row;
}

Evaluation evaluation_of(const Row& row) {
  Evaluation evaluation;
  visit_fields(evaluation, [&](const char* name, auto& value, Role role) {
    if (role != Role::part || row.contains(name)) read(row, name, value);
  });
  return evaluation;
}

bool is_evaluation(const Row& row) {
  const Row& kind = row["kind"];
  return kind == "scores" || kind == "reliability" || kind == "tsne" || kind == "histogram";
}

void check_evaluations(const Rows& rows, const std::string& file) {
  try {
    for (const Row& row : rows) {
      if (is_evaluation(row)) evaluation_of(row);
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(error.what() + (" in " + file) +
                             ": remove the file and evaluate anew");
  }
}

std::string identity(const Row& row) {
  Row key;
  const Evaluation any;
  visit_fields(any, [&](const char* name, const auto&, Role role) {
    if (role != Role::follows && row.contains(name)) key[name] = row[name];
  });
  return key.dump();
}

double Score::value(const std::string& metric) const {
  const auto found = values.find(metric);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::vector<Score> scores(const Rows& rows) {
  std::vector<Score> all;
  std::map<std::tuple<Setting, uint64_t, std::string, int>, size_t> known;  // the row's place
  for (const Evaluation& e : evaluations(rows)) {
    if (e.kind != "scores") continue;
    Score score = score_of(e, rows[e.row]);
    const auto [at, fresh] =
        known.try_emplace({e.setting, e.seed, e.corruption, *e.severity}, e.row);
    if (fresh) {
      all.push_back(std::move(score));
    } else if (rows[at->second]["accuracy"] != rows[e.row]["accuracy"]) {
      refuse_two(rows[at->second], rows[e.row]);
    }
  }
  return all;
}

}  // namespace qact::results
