// A chart's data as a table that other programs read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace qact::report {

// The values of the specification, or of its layer with the most: one line for each, the
// names of the fields above. Quoted where needed, lines end in \n.
std::string csv_of(const nlohmann::ordered_json& spec);

}  // namespace qact::report
