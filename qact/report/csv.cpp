#include "qact/report/csv.h"

#include <algorithm>
#include <vector>

namespace qact::report {
namespace {

using Json = nlohmann::ordered_json;

Json values_of(const Json& spec) {
  if (spec.contains("data")) return spec["data"].value("values", Json::array());
  Json most = Json::array();
  for (const Json& layer : spec.value("layer", Json::array())) {
    Json values = values_of(layer);
    if (values.size() > most.size()) most = std::move(values);
  }
  return most;
}

// One object of parallel lists becomes a list of objects.
Json flattened(const Json& values) {
  if (values.size() != 1 || !values[0].begin()->is_array()) return values;
  Json list = Json::array();
  for (const auto& [key, column] : values[0].items()) {
    for (size_t i = 0; i < column.size(); ++i) list[i][key] = column[i];
  }
  return list;
}

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_of(const Json& spec) {
  const Json values = flattened(values_of(spec));
  std::vector<std::string> names;
  for (const Json& value : values) {
    for (const auto& [key, unused] : value.items()) {
      if (std::find(names.begin(), names.end(), key) == names.end()) names.push_back(key);
    }
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    for (size_t c = 0; c < names.size(); ++c) {
      if (c > 0) text += ',';
      text += cell_of(names[c]);
    }
    text += "\n";
  };
  add_line([](const std::string& name) { return cell(name); });
  for (const Json& value : values) {
    add_line([&](const std::string& name) { return cell(value.value(name, Json())); });
  }
  return text;
}

}  // namespace qact::report
