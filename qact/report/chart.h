// What all charts share: a look that fits light and dark pages alike, and colours.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace qact::report {

using Json = nlohmann::ordered_json;

// How a chart takes its place on the page.
enum class Shape {
  wide,    // as wide as its figure, height as specified
  square,  // as wide as its figure, and as high
  full,    // as wide as the page
};

// A specification with the common look, a description for those who do not see it, and
// nothing drawn yet.
Json chart(const std::string& description, Shape shape = Shape::wide);

// Small multiples of `spec["facet"]`, `columns` side by side (fewer on a phone); as high as
// wide where `square`.
void set_columns(Json& spec, int columns, bool square);

// A nominal colour channel: `labels` in this order, coloured by what they name, so that a
// network looks the same in every chart. `names` are as in rows.
Json network_colour(const std::string& field, const std::vector<std::string>& names,
                    const std::vector<std::string>& labels);

// Severities, of 0 to 5, as colours, blue to red; with `kept`, that word is one too, in grey.
Json severity_colour(const std::string& field, const std::set<int>& severities, bool kept);

// Two classes, told apart in grey too.
inline constexpr const char* kClassColours[] = {"#3b82c4", "#e08a3c"};

}  // namespace qact::report
