#include "qact/report/chart.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace qact::report {
namespace {

// The colour of the text around the chart, so that dark, light and print need no redrawing.
constexpr const char* kInk = "currentColor";
constexpr const char* kFont = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

Json style() {
  return {{"background", nullptr},
          {"font", kFont},
          {"view", {{"stroke", nullptr}}},
          {"axis",
           {{"labelColor", kInk},
            {"titleColor", kInk},
            {"domainColor", kInk},
            {"tickColor", kInk},
            {"gridColor", kInk},
            {"domainOpacity", 0.4},
            {"tickOpacity", 0.4},
            {"gridOpacity", 0.12},
            {"labelFontSize", 11},
            {"titleFontSize", 12},
            {"titleFontWeight", "normal"},
            {"titlePadding", 8}}},
          {"header",
           {{"labelColor", kInk},
            {"titleColor", kInk},
            {"labelFontSize", 12.5},
            {"labelFontWeight", 600}}},
          {"legend",
           {{"labelColor", kInk},
            {"titleColor", kInk},
            {"labelFontSize", 12},
            {"titleFontSize", 12},
            {"titleFontWeight", "normal"}}},
          {"text", {{"color", kInk}, {"fontSize", 11}}},
          {"rule", {{"color", kInk}}}};
}

// A network's colour by its name in rows; readable on white and on near-black.
const char* colour_of(const std::string& network) {
  static constexpr std::pair<const char*, const char*> colours[] = {
      {"relu", "#8d949e"}, {"batchnorm", "#d9a441"},         {"batchnorm_relu", "#d9742b"},
      {"qact", "#2f7ed8"}, {"qact_without_norm", "#2aa198"},
  };
  const auto found = std::find_if(std::begin(colours), std::end(colours),
                                  [&](const auto& entry) { return network == entry.first; });
  return found == std::end(colours) ? "#a06cd5" : found->second;
}

}  // namespace

Json chart(const std::string& description, Shape shape) {
  static constexpr const char* kNames[] = {"wide", "square", "full"};
  return {{"description", description},
          {"usermeta", {{"shape", kNames[static_cast<int>(shape)]}}},
          {"config", style()}};
}

void set_columns(Json& spec, int columns, bool square) {
  spec["columns"] = columns;
  spec["usermeta"]["columns"] = columns;
  spec["usermeta"]["squares"] = square;
}

Json severity_colour(const std::string& field, const std::set<int>& severities, bool running) {
  static constexpr const char* kColours[] = {"#3b7dd8", "#3fa7b5", "#74b06a",
                                             "#d1a93a", "#dd7d3a", "#cf4545"};
  Json domain = Json::array(), range = Json::array();
  for (const int severity : severities) {
    domain.push_back(severity);
    range.push_back(kColours[std::clamp(severity, 0, 5)]);
  }
  if (running) {
    domain.push_back("running");
    range.push_back("#8d949e");
  }
  const Json legend = {{"title", "severity"},
                       {"orient", "bottom"},
                       {"columns", domain.size()},
                       {"symbolType", "stroke"},
                       {"symbolStrokeWidth", 2.5}};
  return {{"field", field},
          {"type", "ordinal"},
          {"scale", {{"domain", domain}, {"range", range}}},
          {"legend", domain.size() > 1 ? legend : Json()}};
}

Json legend_selection(const std::string& field) {
  const Json pick = {{"name", "pick"},
                     {"select", {{"type", "point"}, {"fields", Json::array({field})}}},
                     {"bind", "legend"}};
  return Json::array({pick});
}

Json selection_opacity(double selected, double other) {
  return {{"condition", {{"param", "pick"}, {"value", selected}}}, {"value", other}};
}

Json network_colour(const std::string& field, const std::vector<std::string>& names,
                    const std::vector<std::string>& labels) {
  Json range = Json::array();
  for (const std::string& name : names) range.push_back(colour_of(name));
  return {{"field", field},
          {"type", "nominal"},
          {"scale", {{"domain", labels}, {"range", range}}},
          {"legend", nullptr}};
}

}  // namespace qact::report
