#include <cmath>

#include "qact/report/curves.h"
#include "qact/report/sections.h"
#include "qact/report/severity_chart.h"

namespace qact::report {

// Only the plain curves that were evaluated with tone.
std::vector<Block> tone(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    std::vector<const Curve*> measured_curves;
    for (const Curve& curve : group.curves) {
      const bool measured = std::isfinite(curve.mean("accuracy", group.max_severity, {kTone}));
      if (measured && group.is_plain(curve.setting)) measured_curves.push_back(&curve);
    }
    if (group.max_severity == 0 || measured_curves.empty()) continue;
    blocks.push_back(Heading{group.title()});
    for (const SeverityMetric& metric : severity_metrics()) {
      Chart chart = severity_chart(group.slug("tone_" + std::string(metric.key)), metric,
                                   measured_curves, {kTone});
      if (!chart.spec.is_null()) blocks.push_back(std::move(chart));
    }
  }
  return blocks;
}

}  // namespace qact::report
