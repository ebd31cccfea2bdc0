#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "qact/report/comparisons.h"
#include "qact/report/sections.h"
#include "qact/results/disambiguate.h"

namespace qact::report {
namespace {

struct Bin {
  double confidence = 0, accuracy = 0;  // sums over samples
  int64_t count = 0;
};

// Bins are of equal width, so those of several corruptions and seeds add up.
void add(const results::Row& row, std::vector<Bin>& bins) {
  const auto list = results::field<results::Rows>(row, "bins");
  bins.resize(std::max(bins.size(), list.size()));
  for (size_t b = 0; b < list.size(); ++b) {
    const auto count = results::field<int64_t>(list[b], "count");
    if (count == 0) continue;
    const auto weight = static_cast<double>(count);
    bins[b].confidence += weight * results::field<double>(list[b], "confidence");
    bins[b].accuracy += weight * results::field<double>(list[b], "accuracy");
    bins[b].count += count;
  }
}

// Added over all seeds and the group's corruptions; the same bins given twice count once.
std::map<Setting, std::vector<Bin>> bins_by_setting(const results::Rows& rows,
                                                    const std::vector<results::Evaluation>& all,
                                                    const Group& group, const std::string& which,
                                                    int severity) {
  const auto& names = group.corruptions;
  std::set<std::tuple<Setting, uint64_t, std::string>> seen;
  std::map<Setting, std::vector<Bin>> bins;
  for (const results::Evaluation& e : all) {
    const bool counts =
        severity == 0 || std::find(names.begin(), names.end(), e.corruption) != names.end();
    if (e.kind == "reliability" && e.which == which && e.severity == severity && counts &&
        seen.emplace(e.setting, e.seed, e.corruption).second) {
      add(rows[e.row], bins[e.setting]);
    }
  }
  return bins;
}

Json values_of(const Curve& curve, const std::vector<Bin>& bins) {
  Json values = Json::array();
  for (const Bin& bin : bins) {
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    values.push_back({{"curve", curve.label},
                      {"confidence", bin.confidence / count},
                      {"frequency", bin.accuracy / count},
                      {"values", bin.count}});
  }
  return values;
}

Chart diagram(const std::string& name, const std::string& caption, Json values,
              const std::vector<const Curve*>& curves) {
  const auto axis = [](const char* field, const char* title) -> Json {
    return {{"field", field},
            {"type", "quantitative"},
            {"title", title},
            {"scale", {{"domain", {0, 1}}}},
            {"axis", {{"tickCount", 5}}}};
  };
  const Json x = axis("confidence", "stated probability"),
             y = axis("frequency", "observed frequency");
  const Json opacity = selection_opacity(1, 0.1);
  Json spec =
      chart("Reliability diagram: observed frequency against stated probability", Shape::square);
  spec["width"] = spec["height"] = 300;
  spec["data"] = {{"values", std::move(values)}};
  spec["layer"] = {
      {{"params", legend_selection("curve")},
       {"mark", {{"type", "line"}, {"strokeWidth", 2}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"color", curve_colour(curves)},
         {"strokeDash", curve_dash(curves)},
         {"opacity", opacity}}}},
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"color", curve_colour(curves)},
         {"opacity", opacity},
         {"tooltip",
          {{{"field", "curve"}, {"title", "network"}},
           {{"field", "confidence"}, {"format", ".3f"}, {"title", "stated"}},
           {{"field", "frequency"}, {"format", ".3f"}, {"title", "observed"}},
           {{"field", "values"}, {"format", ","}}}}}}},
      {{"data", {{"values", {{{"confidence", 0}, {"frequency", 0}, {"x2", 1}, {"y2", 1}}}}}},
       {"mark", {{"type", "rule"}, {"strokeDash", {4, 4}}, {"opacity", 0.5}}},
       {"encoding", {{"x", x}, {"y", y}, {"x2", {{"field", "x2"}}}, {"y2", {{"field", "y2"}}}}}}};
  return {name, caption, std::move(spec)};
}

// All calibration metrics, at the highest severity. The library that the paper used takes one bin
// per value where there are few distinct values, as with ranks, and 15 bins otherwise.
Table calibration_table(const Group& group) {
  static constexpr std::pair<const char*, const char*> kMetrics[] = {
      {"ece_top", "top label, 15 bins"},
      {"ece_top_library", "library's bins"},
      {"ece_marginal", "marginal, 15 bins"},
      {"ece_marginal_library", "library's bins"},
      {"ece_plain", "plain ECE"},
      {"nll", "likelihood, -log"},
      {"brier", "Brier score"}};
  Table table{.columns = {{"network"}}, .rows = {}};
  for (const auto& [key, title] : kMetrics) table.columns.push_back({title, true});
  for (const Curve& curve : group.curves) {
    std::vector<std::string> row = {curve.label};
    for (const auto& [key, title] : kMetrics) {
      row.push_back(fixed(curve.mean(key, group.max_severity, group.corruptions), 4));
    }
    table.rows.push_back(std::move(row));
  }
  table.caption = "At severity " + std::to_string(group.max_severity) +
                  ". 15 bins: of equal mass, for every network alike. The library's bins: one per "
                  "value where there are few values, else the same 15. Both debiased; plain ECE "
                  "has 15 bins of equal width and is not.";
  return table;
}

// Nothing where no curve has bins at this severity.
std::vector<Block> diagrams(const results::Rows& rows, const std::vector<results::Evaluation>& all,
                            const Group& group, const Comparison& comparison) {
  static constexpr struct {
    const char *key, *caption;
  } kKinds[] = {{"top", "The highest probability of each image"},
                {"marginal", "The probabilities of all classes, each against the rest"}};
  std::vector<Block> charts;
  for (const auto& kind : kKinds) {
    for (const int severity : std::set{0, group.max_severity}) {
      const auto bins = bins_by_setting(rows, all, group, kind.key, severity);
      std::vector<const Curve*> curves;
      Json values = Json::array();
      for (const Curve* curve : comparison.curves) {
        const auto found = bins.find(curve->setting);
        if (found == bins.end()) continue;
        curves.push_back(curve);
        for (Json& value : values_of(*curve, found->second)) values.push_back(std::move(value));
      }
      if (values.empty()) continue;
      const std::string at = std::to_string(severity);
      charts.push_back(
          diagram(group.slug(std::string("reliability_") + comparison.name + kind.key + "_" + at),
                  std::string(kind.caption) + ", severity " + at + ".", std::move(values), curves));
    }
  }
  return charts;
}

}  // namespace

std::vector<Block> reliability(const results::Rows& rows) {
  const std::vector<results::Evaluation> all = results::evaluations(rows);
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    bool first = true;
    for (const Comparison& comparison : comparisons(group)) {
      std::vector<Block> charts = diagrams(rows, all, group, comparison);
      if (charts.empty()) continue;
      blocks.push_back(Heading{group.title() + ": " + comparison.title});
      if (std::exchange(first, false)) blocks.push_back(calibration_table(group));
      std::move(charts.begin(), charts.end(), std::back_inserter(blocks));
    }
  }
  return blocks;
}

}  // namespace qact::report
