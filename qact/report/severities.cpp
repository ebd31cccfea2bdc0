#include <cmath>

#include "qact/report/comparisons.h"
#include "qact/report/section.h"
#include "qact/report/severity_chart.h"

namespace qact::report {

// The paper's figures 2 to 12.
std::vector<Block> severities(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.max_severity == 0 || group.corruptions.empty()) continue;
    for (const Comparison& comparison : comparisons(group)) {
      blocks.push_back(Heading{group.title() + ": " + comparison.title});
      for (const SeverityMetric& metric : severity_metrics()) {
        Chart chart = severity_chart(group.slug(comparison.name + std::string(metric.key)), metric,
                                     comparison.curves, group.corruptions);
        if (!chart.spec.is_null()) blocks.push_back(std::move(chart));
      }
    }
  }
  return blocks;
}

// Ranks survive any tone curve; means and variances do not.
std::vector<Block> tone(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    std::vector<const Curve*> shown;
    for (const Curve& curve : group.curves) {
      const bool measured = std::isfinite(curve.mean("accuracy", group.max_severity, {kTone}));
      if (measured && group.is_usual(curve.setting)) shown.push_back(&curve);
    }
    if (group.max_severity == 0 || shown.empty()) continue;
    blocks.push_back(Heading{group.title()});
    for (const SeverityMetric& metric : severity_metrics()) {
      Chart chart =
          severity_chart(group.slug("tone_" + std::string(metric.key)), metric, shown, {kTone});
      if (!chart.spec.is_null()) blocks.push_back(std::move(chart));
    }
  }
  return blocks;
}

}  // namespace qact::report
