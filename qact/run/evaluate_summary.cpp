#include "qact/run/evaluate_summary.h"

#include <algorithm>
#include <limits>

#include "qact/metrics/drop.h"
#include "qact/results/evaluation.h"

namespace qact::run {
namespace {

using results::Row;
using results::Rows;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number(const Row& row, const char* name) {
  return row.at(name).is_number() ? row.at(name).get<double>() : kNone;
}

std::map<int, double> by_severity(const Rows& rows, const char* name) {
  std::map<int, double> sums, counts;
  for (const Row& row : rows) {
    const int severity = row.at("severity");
    sums[severity] += number(row, name);
    counts[severity] += 1;
  }
  for (auto& [severity, sum] : sums) sum /= counts[severity];
  return sums;
}

// error[distortion][severity - 1] of the distortions, in any order.
std::vector<std::vector<double>> errors(const Rows& rows) {
  std::map<std::string, std::map<int, double>> of;
  for (const Row& row : rows) {
    if (row.at("severity") > 0)
      of[row.at("distortion")][row.at("severity")] = 1 - number(row, "accuracy");
  }
  std::vector<std::vector<double>> out;
  for (const auto& [distortion, severities] : of) {
    out.emplace_back();
    for (const auto& [severity, error] : severities) out.back().push_back(error);
  }
  return out;
}

// Tone curves are a family of their own: alone, or not in the means.
Rows to_average(const Rows& rows) {
  Rows out;
  for (const Row& row : rows) {
    if (row.at("distortion") != results::kTone) out.push_back(row);
  }
  const bool others =
      std::any_of(out.begin(), out.end(), [](const Row& row) { return row.at("severity") > 0; });
  return others ? out : rows;
}

EvaluateSummary summary_of(const Rows& all) {
  const Rows rows = to_average(all);
  EvaluateSummary s;
  const Row& first = rows.front();
  first.at("dataset").get_to(s.dataset);
  first.at("model").get_to(s.model);
  first.at("activation").get_to(s.activation);
  first.at("placement").get_to(s.placement);
  first.at("loss").get_to(s.loss);
  first.at("mode").get_to(s.mode);
  first.at("classifier").get_to(s.classifier);
  first.at("model_hash").get_to(s.hash);
  first.at("seed").get_to(s.seed);
  s.accuracy = by_severity(rows, "accuracy");
  s.ece_top = by_severity(rows, "ece_top");
  s.ece_marginal = by_severity(rows, "ece_marginal");
  s.map100 = by_severity(rows, "map100");
  const auto clean = s.accuracy.find(0);
  s.corruption_error = metrics::mean_corruption_error(errors(rows));
  s.relative_corruption_error = metrics::relative_corruption_error(
      errors(rows), clean == s.accuracy.end() ? kNone : 1 - clean->second);
  return s;
}

}  // namespace

double EvaluateSummary::drop(int from, int to) const {
  const auto a = accuracy.find(from), b = accuracy.find(to);
  return a == accuracy.end() || b == accuracy.end() ? kNone : a->second - b->second;
}

std::vector<EvaluateSummary> summarise(const Rows& rows) {
  std::vector<std::string> keys;
  std::map<std::string, Rows> groups;
  for (const Row& row : results::of_kind(rows, "scores")) {
    const std::string key =
        Row({row.at("model_hash"), row.at("dataset"), row.at("mode"), row.at("classifier"),
             row.at("batch_size"), row.at("prior"), row.at("limit")})
            .dump();
    if (!groups.contains(key)) keys.push_back(key);
    groups[key].push_back(row);
  }
  std::vector<EvaluateSummary> out;
  for (const std::string& key : keys) out.push_back(summary_of(groups[key]));
  return out;
}

}  // namespace qact::run
