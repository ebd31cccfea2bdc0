#include "qact/results/evaluation.h"

namespace qact::results {
namespace {

template <class T>
Row json_of(const T& value) {
  return value;
}
template <class T>
Row json_of(const std::optional<T>& value) {
  return value ? Row(*value) : Row(nullptr);
}
Row json_of(const Training& training) { return Row::parse(training.json); }

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

}  // namespace

const std::set<std::string>& evaluation_keys() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    const Evaluation any;
    visit_fields(any, [&](const char* name, const auto&, Role) { all.insert(name); });
    return all;
  }();
  return names;
}

Row to_row(const Setting& setting) {
  Row row;
  visit_setting(setting,
                [&](const char* name, const auto& value, Role) { row[name] = json_of(value); });
  return row;
}

Row to_row(const Evaluation& evaluation) {
  Row row;
  visit_fields(evaluation, [&](const char* name, const auto& value, Role role) {
    Row entry = json_of(value);
    if (role != Role::optional_identity || !entry.is_null()) row[name] = std::move(entry);
  });
  return row;
}

Evaluation evaluation_of(const Row& row) {
  Evaluation evaluation;
  visit_fields(evaluation, [&](const char* name, auto& value, Role role) {
    if (role != Role::optional_identity || row.contains(name)) read(row, name, value);
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
    if (role != Role::derived && row.contains(name)) key[name] = row[name];
  });
  return key.dump();
}

}  // namespace qact::results
