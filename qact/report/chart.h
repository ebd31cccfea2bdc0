// What all Vega-Lite charts share: a style for light and dark pages, colours, and selections.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace qact::report {

using Json = nlohmann::ordered_json;

// The size of a chart on the page.
enum class Shape {
  wide,    // as wide as its figure, height as specified
  square,  // as wide as its figure, and as high
  full,    // as wide as the page
};

// An empty Vega-Lite specification with the common style and a description for screen readers.
Json chart(const std::string& description, Shape shape = Shape::wide);

// Small multiples of `spec["facet"]` in `columns` columns (fewer on a phone); as high as wide where
// `square`.
void set_columns(Json& spec, int columns, bool square);

// A nominal colour channel: `labels` in this order, with the colour of the network in `names` (as
// in rows), so that a network has the same colour in every chart.
Json network_colour(const std::string& field, const std::vector<std::string>& names,
                    const std::vector<std::string>& labels);

// An ordinal colour channel: severities 0 to 5 from blue to red. `running` adds that word, in grey,
// for running contexts.
Json severity_colour(const std::string& field, const std::set<int>& severities, bool running);

// The selection of what is clicked in the legend of `field`, as a list of params.
Json legend_selection(const std::string& field);
// The opacity of marks in that selection and of all others.
Json selection_opacity(double selected, double other);

// Two classes, distinct in greyscale too.
inline constexpr const char* kClassColours[] = {"#3b82c4", "#e08a3c"};

}  // namespace qact::report
