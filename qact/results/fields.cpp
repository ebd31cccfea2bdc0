#include "qact/results/fields.h"

#include <algorithm>

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

std::vector<Field> fields_of(const Row& row, const Training& training) {
  std::vector<Field> all;
  for (const auto& [name, value] : row.items()) {
    if (name != "training") all.push_back({name, text_of(value)});
  }
  for (Field& field : fields_of(training)) all.push_back(std::move(field));
  return all;
}

}  // namespace

std::vector<Field> fields_of(const Training& training) {
  std::vector<Field> all;
  const Row options = Row::parse(training.json);
  for (const auto& [name, value] : options.items()) {
    const bool taken = evaluation_keys().contains(key_of(name));
    all.push_back({(taken ? "train." : "") + name, text_of(value), true});
  }
  return all;
}

std::vector<Field> fields_of(const Evaluation& evaluation) {
  return fields_of(to_row(evaluation), evaluation.setting.training);
}

std::vector<Field> fields_of(const Setting& setting) {
  return fields_of(to_row(setting), setting.training);
}

std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace qact::results
