#include "qact/report/means.h"

#include "qact/report/curves.h"

namespace qact::report {
namespace {

constexpr const char* kMetrics[] = {"accuracy", "ece_top", "ece_marginal",
                                    "map100",   "nll",     "brier"};

// Of one metric; null where no row has it.
Json metric_of(const Curve& curve, const std::string& metric,
               const std::vector<std::string>& corruptions) {
  Json out = {{"mean", Json::object()}, {"deviation", Json::object()}, {"seeds", Json::object()}};
  std::vector<int> severities;
  for (const int severity : curve.severities()) {
    const results::Mean mean = curve.over_seeds(metric, severity, corruptions);
    if (mean.count == 0) continue;
    const std::string at = std::to_string(severity);
    out["mean"][at] = mean.mean;
    out["deviation"][at] = mean.deviation;
    out["seeds"][at] = mean.count;
    severities.push_back(severity);
  }
  if (severities.empty()) return nullptr;
  const int from = severities.front(), to = severities.back();
  const results::Mean drop = curve.drop(metric, from, to, corruptions);
  out["drop"] = {{"from", from},
                 {"to", to},
                 {"mean", drop.mean},
                 {"deviation", drop.deviation},
                 {"seeds", drop.count}};
  return out;
}

Json entry_of(const Curve& curve, const char* kind, const std::vector<std::string>& corruptions) {
  Json metrics = Json::object();
  for (const char* metric : kMetrics) {
    const Json values = metric_of(curve, metric, corruptions);
    if (!values.is_null()) metrics[metric] = values;
  }
  return {{"label", curve.label},
          {"kind", kind},
          {"corruptions", corruptions},
          {"seeds", curve.seeds()},
          {"setting", results::to_row(curve.setting)},
          {"metrics", metrics}};
}

}  // namespace

Json means(const results::Rows& rows) {
  Json all = Json::array();
  for (const Group& group : groups(rows)) {
    for (const Curve& curve : group.curves) {
      all.push_back(entry_of(curve, "benchmark", group.corruptions));
      for (const char* tone : {kTone, results::kGamma4}) {
        const bool toned = std::any_of(curve.scores.begin(), curve.scores.end(),
                                       [&](const Score& s) { return s.corruption == tone; });
        if (toned) all.push_back(entry_of(curve, tone, {tone}));
      }
    }
  }
  return all;
}

}  // namespace qact::report
