#include "qact/report/curves.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "qact/base/joined.h"
#include "qact/report/labels.h"

namespace qact::report {
namespace {

std::pair<std::string, std::string> usual(const std::vector<Curve>& curves) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const Curve& curve : curves) ++counts[{curve.setting.loss, curve.setting.classifier}];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// "all images", or "the first N images".
std::string images_of(int64_t limit) {
  return limit == 0 ? "all images" : "the first " + std::to_string(limit) + " images";
}

// Corruptions that some curves have, but not at every severity, or not all curves.
std::set<std::string> left_out_of_means(const Group& group,
                                        const results::CommonCorruptions& common) {
  std::set<std::string> names;
  for (const Curve& curve : group.curves) {
    for (const std::string& name : curve.corruptions()) names.insert(name);
  }
  for (const std::string& name : common.names) names.erase(name);
  return names;
}

std::vector<std::string> notes_of(const Group& group, const results::CommonCorruptions& common,
                                  const std::vector<results::LeftOut>& left_out) {
  std::vector<std::string> notes;
  const auto label = [&](const Setting& setting) {
    return std::find_if(group.curves.begin(), group.curves.end(),
                        [&](const Curve& c) { return c.setting == setting; })
        ->label;
  };
  for (const results::LeftOut& gone : left_out) {
    notes.push_back("Left out: an evaluation of " + label(gone.kept) + " on " +
                    images_of(gone.curve.setting.limit) + "; shown is the one on " +
                    images_of(gone.kept.limit) + ".");
  }
  for (const results::CommonCorruptions::Incomplete& unit : common.incomplete) {
    const Curve& curve = group.curves[unit.curve];
    const std::string seed =
        curve.seeds().size() > 1 ? ", seed " + std::to_string(unit.seed) + "," : "";
    notes.push_back("Not in the means over corruptions: " + curve.label + seed +
                    " was evaluated on " + std::to_string(unit.count) + " of the " +
                    std::to_string(common.names.size()) + " corruptions in full.");
  }
  const std::set<std::string> missing = left_out_of_means(group, common);
  if (!missing.empty()) {
    notes.push_back("Not in the means over corruptions: " + base::joined(missing, ", ") +
                    ". Not every evaluation has " + (missing.size() > 1 ? "them" : "it") +
                    " at all of its severities.");
  }
  return notes;
}

Group make_group(const std::vector<results::Curve>& all) {
  Group group{.dataset = all[0].setting.dataset,
              .model = all[0].setting.model,
              .curves = {},
              .corruptions = {},
              .notes = {},
              .loss = "",
              .classifier = ""};
  std::vector<results::LeftOut> left_out;
  for (results::Curve& curve : results::most_complete(all, left_out)) {
    for (const int severity : curve.severities()) {
      group.max_severity = std::max(group.max_severity, severity);
    }
    group.curves.push_back({std::move(curve), "", "", {}});
  }
  // By the whole setting, so that the order of files does not matter.
  std::stable_sort(group.curves.begin(), group.curves.end(), [](const Curve& a, const Curve& b) {
    return std::pair(order_of(a.setting), a.setting) < std::pair(order_of(b.setting), b.setting);
  });
  std::tie(group.loss, group.classifier) = usual(group.curves);
  name_and_colour(group);
  std::vector<const results::Curve*> curves;
  for (const Curve& curve : group.curves) curves.push_back(&curve);
  const results::CommonCorruptions common = results::common_corruptions(curves);
  group.corruptions = common.names;
  group.notes = notes_of(group, common, left_out);
  return group;
}

Json legend(const std::vector<const Curve*>& curves) {
  size_t longest = 0;
  for (const Curve* curve : curves) longest = std::max(longest, curve->label.size());
  return {{"title", nullptr},  {"orient", "bottom"},     {"columns", longest > 26 ? 1 : 2},
          {"labelLimit", 0},   {"symbolType", "stroke"}, {"symbolStrokeWidth", 2},
          {"symbolOpacity", 1}};
}

template <class Range>
Json by_curve(const std::vector<const Curve*>& curves, const Range& range) {
  Json labels = Json::array(), values = Json::array();
  for (const Curve* curve : curves) {
    labels.push_back(curve->label);
    values.push_back(range(*curve));
  }
  return {{"field", "curve"},
          {"type", "nominal"},
          {"scale", {{"domain", labels}, {"range", values}}},
          {"legend", legend(curves)}};
}

}  // namespace

std::string Group::slug(const std::string& chart) const {
  std::string name = dataset + "_" + model + "_" + chart;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  }
  return name;
}

std::vector<results::Field> image_fields(const Setting& setting,
                                         const std::vector<std::string>& corruptions) {
  std::vector<results::Field> fields = results::fields_of(setting);
  const bool frost =
      std::find(corruptions.begin(), corruptions.end(), "frost") != corruptions.end();
  std::erase_if(fields, [&](const results::Field& field) {
    static const std::set<std::string> kNames = {"limit", "clean_hash", "source", "official",
                                                 "data_seed"};
    return field.training || !(kNames.contains(field.name) || (frost && field.name == "frost"));
  });
  return fields;
}

const Curve* Group::closest(const Setting& like, const std::string& activation,
                            const std::string& mode, const std::string& adapt) const {
  const std::vector<results::Field> wanted = results::fields_of(like);
  const std::vector<results::Field> images = image_fields(like, corruptions);
  const Curve* best = nullptr;
  size_t most = 0;
  for (const Curve& curve : curves) {
    const Setting& s = curve.setting;
    if (s.activation != activation || s.mode != mode || s.adapt != adapt) continue;
    if (s.stream != like.stream || !is_usual(s)) continue;
    if (mode != "tracked" && s.batch_size != like.batch_size) continue;
    if (image_fields(s, corruptions) != images) continue;
    size_t in_common = 1;
    for (const results::Field& field : results::fields_of(s)) {
      in_common += static_cast<size_t>(
          std::count_if(wanted.begin(), wanted.end(), [&](const results::Field& other) {
            return other.name == field.name && other.value == field.value;
          }));
    }
    if (in_common > most) most = in_common, best = &curve;
  }
  return best;
}

const Curve* Group::curve_of(const results::Evaluation& row) const {
  for (const Curve& curve : curves) {
    Setting own = curve.setting;
    if (!own.model_hash.empty() && own.model_hash != row.model_hash) continue;
    own.classifier = row.setting.classifier;
    own.limit = row.setting.limit;
    own.frost = row.setting.frost;
    own.data_hash = row.setting.data_hash;
    own.model_hash = row.setting.model_hash;
    if (own == row.setting) return &curve;
  }
  return nullptr;
}

std::string label_of(const results::Evaluation& row, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    const Curve* const curve = group.curve_of(row);
    if (!curve) continue;
    const std::string seed = ", seed " + std::to_string(row.seed);
    return curve->label + (curve->seeds().size() > 1 ? seed : "");
  }
  return activation_name(row.setting.activation) + ", " + mode_name(row.setting);
}

std::vector<Group> groups(const results::Rows& rows) {
  std::vector<std::vector<results::Curve>> parts;
  for (results::Curve& curve : results::curves(results::scores(rows))) {
    const auto same = [&](const std::vector<results::Curve>& part) {
      return part[0].setting.dataset == curve.setting.dataset &&
             part[0].setting.model == curve.setting.model;
    };
    auto found = std::find_if(parts.begin(), parts.end(), same);
    if (found == parts.end()) found = parts.insert(found, std::vector<results::Curve>());
    found->push_back(std::move(curve));
  }
  std::vector<Group> all;
  for (const auto& part : parts) all.push_back(make_group(part));
  return all;
}

Series series_of(const Curve& curve, const std::string& metric,
                 const std::vector<std::string>& corruptions) {
  Series series{.points = {}, .over_seeds = curve.seeds().size() > 1};
  for (const int severity : curve.severities()) {
    const results::Mean mean = curve.over_seeds(metric, severity, corruptions);
    if (mean.count == 0) continue;
    series.points.push_back(
        {severity, mean.mean,
         series.over_seeds ? mean.deviation : curve.deviation(metric, severity, corruptions)});
  }
  return series;
}

Json curve_colour(const std::vector<const Curve*>& curves) {
  return by_curve(curves, [](const Curve& curve) { return curve.colour; });
}

Json curve_dash(const std::vector<const Curve*>& curves) {
  // A dash of nothing draws nothing in some browsers; 1, 0 is a solid line.
  return by_curve(curves, [](const Curve& curve) {
    return curve.dash.empty() ? Json{1, 0} : Json(curve.dash);
  });
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace qact::report
