#include "qact/eval/summary.h"

#include <limits>

namespace qact::eval {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

EvaluateSummary summary_of(const results::Curve& curve) {
  std::vector<std::string> corruptions = curve.corruptions();
  if (corruptions.empty()) corruptions = {results::kTone};  // alone, or not in the means
  EvaluateSummary s;
  s.setting = curve.setting;
  s.seed = curve.scores.front().seed;
  for (const int severity : curve.severities()) {
    s.accuracy[severity] = curve.mean("accuracy", severity, corruptions);
    s.ece_top[severity] = curve.mean("ece_top", severity, corruptions);
    s.ece_marginal[severity] = curve.mean("ece_marginal", severity, corruptions);
    s.map100[severity] = curve.mean("map100", severity, corruptions);
  }
  s.corruption_error = curve.corruption_error(curve.severities(), corruptions);
  s.relative_corruption_error = s.corruption_error - (1 - curve.mean("accuracy", 0, corruptions));
  return s;
}

}  // namespace

double EvaluateSummary::drop(int from, int to) const {
  const auto a = accuracy.find(from), b = accuracy.find(to);
  return a == accuracy.end() || b == accuracy.end() ? kNone : a->second - b->second;
}

std::vector<EvaluateSummary> summarise(const results::Rows& rows) {
  std::vector<EvaluateSummary> all;
  for (const results::Curve& curve : results::curves(results::scores(rows))) {
    all.push_back(summary_of(curve));
  }
  return all;
}

}  // namespace qact::eval
