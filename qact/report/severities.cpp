#include "qact/report/comparisons.h"
#include "qact/report/sections.h"
#include "qact/report/severity_chart.h"

namespace qact::report {

// The paper's figures 2 to 12.
std::vector<Block> severities(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.max_severity == 0 || group.corruptions.empty()) continue;
    for (const Comparison& comparison : comparisons(group)) {
      blocks.push_back(Heading{group.title() + ": " + comparison.title});
      if (*comparison.note) blocks.push_back(Text{comparison.note});
      for (const SeverityMetric& metric : severity_metrics()) {
        Chart chart = severity_chart(group.slug(comparison.name + metric.key), metric,
                                     comparison.curves, group.corruptions);
        if (!chart.spec.is_null()) blocks.push_back(std::move(chart));
      }
    }
  }
  return blocks;
}

}  // namespace qact::report
