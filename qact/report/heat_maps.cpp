#include <algorithm>
#include <cmath>

#include "qact/report/curves.h"
#include "qact/report/sections.h"

namespace qact::report {
namespace {

// Every corruption of a curve, with tone.
std::vector<std::string> corruptions_of(const Curve& curve) {
  std::vector<std::string> names;
  for (const Score& score : curve.scores) {
    if (score.severity > 0 &&
        std::find(names.begin(), names.end(), score.corruption) == names.end()) {
      names.push_back(score.corruption);
    }
  }
  return names;
}

// value(corruption, severity) as cells with their numbers in them.
template <class Value>
Json cells(const std::vector<std::string>& corruptions, int max_severity, const Value& value) {
  Json values = Json::array();
  for (const std::string& corruption : corruptions) {
    for (int severity = 0; severity <= max_severity; ++severity) {
      const double v = value(corruption, severity);
      if (!std::isfinite(v)) continue;
      values.push_back({{"corruption", corruption}, {"severity", severity}, {"value", v}});
    }
  }
  return values;
}

Chart heat_map(const std::string& name, const std::string& title, const std::string& caption,
               const std::vector<std::string>& corruptions, Json values, const Json& scale) {
  const Json x = {{"field", "severity"},
                  {"type", "ordinal"},
                  {"title", "severity"},
                  {"axis", {{"labelAngle", 0}, {"domain", false}, {"ticks", false}}}};
  const Json y = {{"field", "corruption"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", corruptions},
                  {"axis", {{"domain", false}, {"ticks", false}}}};
  Json spec = chart(title + " for every corruption and severity");
  spec["usermeta"]["axisWidth"] = 130;
  spec["width"] = 300;
  spec["height"] = {{"step", 19}};
  spec["data"] = {{"values", std::move(values)}};
  // The number covers its cell: both say the same to who points there.
  spec["encoding"] = {{"x", x},
                      {"y", y},
                      {"tooltip",
                       {{{"field", "corruption"}},
                        {{"field", "severity"}},
                        {{"field", "value"}, {"format", ".2f"}, {"title", title}}}}};
  // The number stays readable on every cell: dark ink with a thin light rim.
  spec["layer"] = {
      {{"mark", {{"type", "rect"}, {"cornerRadius", 1}}},
       {"encoding",
        {{"color",
          {{"field", "value"}, {"type", "quantitative"}, {"scale", scale}, {"legend", nullptr}}}}}},
      {{"mark", {{"type", "text"}, {"fontSize", 10}, {"color", "#10151c"}}},
       {"encoding",
        {{"text", {{"field", "value"}, {"type", "quantitative"}, {"format", ".1f"}}}}}}};
  return {name, caption, std::move(spec)};
}

double accuracy(const Curve& curve, const std::string& corruption, int severity) {
  return 100 * curve.mean("accuracy", severity, {corruption});
}

}  // namespace

std::vector<Block> heat_maps(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.max_severity == 0) continue;
    blocks.push_back(Heading{group.title() + ": accuracy, %"});
    int number = 0;
    for (const Curve& curve : group.curves) {
      const std::vector<std::string> corruptions = corruptions_of(curve);
      if (corruptions.empty() || !group.is_usual(curve.setting)) continue;
      blocks.push_back(
          heat_map(group.slug("heat_" + std::to_string(++number)), "accuracy, %", curve.label + ".",
                   corruptions,
                   cells(corruptions, group.max_severity,
                         [&](const std::string& d, int s) { return accuracy(curve, d, s); }),
                   {{"domain", {0, 100}}, {"range", {"#e8907a", "#f2d28c", "#8fcfae"}}}));
    }
    // Both use batch statistics: the difference is the activation's.
    const Curve* baseline = nullptr;
    const auto has_baseline = [&](const Curve& curve) {
      const Setting& s = curve.setting;
      if (s.activation != "qact" || s.mode != "batch" || s.adapt != kNotAdapted) return false;
      baseline = group.is_usual(s) ? group.closest(s, "relu", "batch") : nullptr;
      return baseline != nullptr;
    };
    const auto ours = std::find_if(group.curves.begin(), group.curves.end(), has_baseline);
    if (ours == group.curves.end()) continue;
    const std::vector<std::string> corruptions = corruptions_of(*ours);
    blocks.push_back(heat_map(
        group.slug("heat_gain"), "gain, points",
        "What the activation adds: accuracy of " + ours->label + " less that of " +
            baseline->label + ", points.",
        corruptions,
        cells(corruptions, group.max_severity,
              [&](const std::string& d, int s) {
                return accuracy(*ours, d, s) - accuracy(*baseline, d, s);
              }),
        {{"domain", {-10, 0, 10}}, {"clamp", true}, {"range", {"#e0876f", "#ececec", "#7fb2e5"}}}));
  }
  return blocks;
}

}  // namespace qact::report
