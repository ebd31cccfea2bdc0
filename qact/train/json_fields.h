// A struct as a JSON object and back. The struct lists its fields in a static function template
// visit_fields(self, visit), which calls visit(name, field) for each.
#pragma once

#include <nlohmann/json.hpp>

namespace qact::train {

template <class Struct>
nlohmann::ordered_json fields_to_json(const Struct& from) {
  nlohmann::ordered_json json;
  Struct::visit_fields(from, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

// Throws where a field is missing.
template <class Struct>
void fields_from_json(const nlohmann::ordered_json& json, Struct* to) {
  Struct::visit_fields(*to, [&](const char* name, auto& field) { json.at(name).get_to(field); });
}

}  // namespace qact::train
