#include "qact/report/curves.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "qact/report/labels.h"

namespace qact::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Mean {
  double sum = 0, squares = 0;
  int64_t n = 0;

  void add(double v) {
    if (!std::isfinite(v)) return;
    sum += v;
    squares += v * v;
    ++n;
  }
  double mean() const { return n > 0 ? sum / static_cast<double>(n) : kNone; }
  double deviation() const {
    if (n < 2) return 0;
    const auto count = static_cast<double>(n);
    return std::sqrt(std::max(0.0, (squares - sum * sum / count) / (count - 1)));
  }
};

double value_of(const Curve& curve, const Score& score, const std::string& metric) {
  if (metric != "drop") return score.value(metric);
  if (score.severity == 0) return 0;
  const auto clean = std::find_if(
      curve.scores.begin(), curve.scores.end(),
      [&](const Score& other) { return other.severity == 0 && other.seed == score.seed; });
  return clean == curve.scores.end() ? kNone : clean->value("accuracy") - score.value("accuracy");
}

// Shown to every curve at the same severities: an evaluation may be under way.
std::vector<std::string> common_distortions(const std::vector<Curve>& curves) {
  std::vector<std::string> common;
  std::map<std::string, std::set<std::pair<const Curve*, int>>> shown;
  std::map<std::string, std::set<int>> severities;
  for (const Curve& curve : curves) {
    for (const Score& score : curve.scores) {
      if (score.severity == 0 || score.distortion == kTone) continue;
      if (shown[score.distortion].empty()) common.push_back(score.distortion);
      shown[score.distortion].emplace(&curve, score.severity);
      severities[score.distortion].insert(score.severity);
    }
  }
  std::erase_if(common, [&](const auto& name) {
    return shown[name].size() < curves.size() * severities[name].size();
  });
  return common;
}

std::pair<std::string, std::string> usual(const std::vector<Curve>& curves) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const Curve& curve : curves) ++counts[{curve.setting.loss, curve.setting.classifier}];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Group make_group(const std::vector<Score>& scores) {
  Group group{.dataset = scores[0].setting.dataset,
              .model = scores[0].setting.model,
              .curves = {},
              .distortions = {},
              .loss = "",
              .classifier = ""};
  for (const Score& score : scores) {
    auto found = std::find_if(group.curves.begin(), group.curves.end(),
                              [&](const Curve& c) { return c.setting == score.setting; });
    if (found == group.curves.end()) {
      group.curves.push_back(
          {.setting = score.setting, .label = "", .colour = "", .dash = {}, .scores = {}});
      found = group.curves.end() - 1;
    }
    found->scores.push_back(score);
    group.most = std::max(group.most, score.severity);
  }
  std::stable_sort(group.curves.begin(), group.curves.end(), [](const Curve& a, const Curve& b) {
    return order_of(a.setting) < order_of(b.setting);
  });
  std::tie(group.loss, group.classifier) = usual(group.curves);
  name_and_colour(group);
  group.distortions = common_distortions(group.curves);
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

bool is_among(const std::string& distortion, int severity,
              const std::vector<std::string>& distortions) {
  return severity == 0 ||
         std::find(distortions.begin(), distortions.end(), distortion) != distortions.end();
}

double Curve::mean(const std::string& metric, int severity,
                   const std::vector<std::string>& distortions) const {
  Mean mean;
  for (const Score& score : scores) {
    if (score.severity == severity && is_among(score.distortion, score.severity, distortions)) {
      mean.add(value_of(*this, score, metric));
    }
  }
  return mean.mean();
}

std::string Group::slug(const std::string& chart) const {
  std::string name = dataset + "_" + model + "_" + chart;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  }
  return name;
}

const Curve* Group::first(const std::string& activation, const std::string& mode) const {
  for (const Curve& curve : curves) {
    const Setting& s = curve.setting;
    if (s.activation == activation && s.mode == mode && is_usual(s)) return &curve;
  }
  return nullptr;
}

std::vector<Group> groups(const results::Rows& rows) {
  std::vector<std::vector<Score>> parts;
  for (const Score& score : results::scores(rows)) {
    const auto same = [&](const std::vector<Score>& part) {
      return part[0].setting.dataset == score.setting.dataset &&
             part[0].setting.model == score.setting.model;
    };
    auto found = std::find_if(parts.begin(), parts.end(), same);
    if (found == parts.end()) found = parts.insert(found, std::vector<Score>());
    found->push_back(score);
  }
  std::vector<Group> all;
  for (const auto& part : parts) all.push_back(make_group(part));
  return all;
}

Course course(const Curve& curve, const std::string& metric,
              const std::vector<std::string>& distortions) {
  std::map<int, std::map<int64_t, Mean>> seeds;  // of each severity
  std::map<int, Mean> all;
  Course course;
  for (const Score& score : curve.scores) {
    if (!is_among(score.distortion, score.severity, distortions)) continue;
    const double value = value_of(curve, score, metric);
    seeds[score.severity][score.seed].add(value);
    all[score.severity].add(value);
    course.over_seeds |= seeds[score.severity].size() > 1;
  }
  for (const auto& [severity, total] : all) {
    if (total.n == 0) continue;
    Mean between;
    for (const auto& [seed, mean] : seeds[severity]) between.add(mean.mean());
    course.points.push_back(
        {severity, between.mean(), course.over_seeds ? between.deviation() : total.deviation()});
  }
  return course;
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
