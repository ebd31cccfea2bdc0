// A chart's data as CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace qact::report {

// The values of the specification, or of its layer with the most values: a header of field names,
// then a line for each value. Quoted where needed; lines end in \n.
std::string csv_of(const nlohmann::ordered_json& spec);

}  // namespace qact::report
