#include "qact/report/severity_chart.h"

#include <algorithm>
#include <cmath>

namespace qact::report {
namespace {

Json values_of(const SeverityMetric& metric, const std::vector<const Curve*>& curves,
               const std::vector<std::string>& corruptions, bool& over_seeds, bool& one_seed) {
  Json values = Json::array();
  over_seeds = one_seed = false;
  const double lowest =
      metric.key == std::string("drop") ? -1 : 0;  // bands end at the possible values
  for (const Curve* curve : curves) {
    const Series line = series_of(*curve, metric.key, corruptions);
    (line.over_seeds ? over_seeds : one_seed) = true;
    for (const Series::Point& point : line.points) {
      values.push_back({{"curve", curve->label},
                        {"severity", point.severity},
                        {"mean", metric.scale * point.mean},
                        {"deviation", metric.scale * point.deviation},
                        {"low", metric.scale * std::max(lowest, point.mean - point.deviation)},
                        {"high", metric.scale * std::min(1.0, point.mean + point.deviation)}});
    }
  }
  return values;
}

}  // namespace

std::span<const SeverityMetric> severity_metrics() {
  static const SeverityMetric all[] = {
      {"accuracy", "accuracy, %", "Accuracy: higher is better.", 100, ".2f"},
      {"drop", "drop in accuracy, points", "Drop from the uncorrupted images: lower is better.",
       100, ".2f"},
      {"ece_top", "calibration error, top label",
       "Calibration error of the highest probability, debiased, 15 bins of equal mass: lower is "
       "better.",
       1, ".4f"},
      {"ece_marginal", "calibration error, marginal",
       "Calibration error of each class against the rest, debiased, 15 bins of equal mass: lower "
       "is better.",
       1, ".4f"},
      {"map100", "MAP@100",
       "Mean average precision of the 100 nearest embeddings: higher is better.", 1, ".4f"},
  };
  return all;
}

Chart severity_chart(const std::string& name, const SeverityMetric& metric,
                     const std::vector<const Curve*>& curves,
                     const std::vector<std::string>& corruptions) {
  bool over_seeds = false, one_seed = false;
  const Json values = values_of(metric, curves, corruptions, over_seeds, one_seed);
  if (values.empty()) return {name, "", nullptr};
  const Json x = {{"field", "severity"},
                  {"type", "quantitative"},
                  {"title", "severity"},
                  {"axis", {{"values", {0, 1, 2, 3, 4, 5}}, {"format", "d"}, {"grid", false}}}};
  const auto y = [&](const char* field) -> Json {
    return {{"field", field},
            {"type", "quantitative"},
            {"title", metric.axis},
            {"scale", {{"zero", false}}},
            {"axis", {{"tickCount", 6}}}};
  };
  const Json colour = curve_colour(curves);
  Json spec = chart(std::string(metric.axis) + " against severity, a line for each network");
  spec["width"] = 360;
  spec["height"] = 240;
  spec["data"] = {{"values", values}};
  spec["layer"] = {
      {{"mark", {{"type", "area"}}},
       {"encoding",
        {{"x", x},
         {"y", y("low")},
         {"y2", {{"field", "high"}}},
         {"color", colour},
         {"opacity", selection_opacity(0.09, 0.02)}}}},
      {{"params", legend_selection("curve")},
       {"mark", {{"type", "line"}, {"strokeWidth", 2.2}}},
       {"encoding",
        {{"x", x},
         {"y", y("mean")},
         {"color", colour},
         {"strokeDash", curve_dash(curves)},
         {"opacity", selection_opacity(1, 0.1)}}}},
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 55}}},
       {"encoding",
        {{"x", x},
         {"y", y("mean")},
         {"color", colour},
         {"opacity", selection_opacity(1, 0.1)},
         {"tooltip",
          {{{"field", "curve"}, {"title", "network"}},
           {{"field", "severity"}},
           {{"field", "mean"}, {"format", metric.format}, {"title", metric.axis}},
           {{"field", "deviation"}, {"format", metric.format}, {"title", "deviation"}}}}}}}};
  const std::string parts = corruptions.size() == 1
                                ? corruptions[0]
                                : "mean of " + std::to_string(corruptions.size()) + " corruptions";
  std::string caption = std::string(metric.meaning) + " The line: " + parts + ".";
  if (over_seeds) {
    caption += " The band: one deviation between seeds";
    caption += one_seed && corruptions.size() > 1
                   ? "; where there is one seed, between corruptions."
                   : ".";
  } else if (corruptions.size() > 1) {
    caption += " The band: one deviation between corruptions.";
  }
  return {name, caption, std::move(spec)};
}

}  // namespace qact::report
