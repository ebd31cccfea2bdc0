// A chart of a metric against severity, with a line and a band for each curve.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qact/report/curves.h"
#include "qact/report/sections.h"

namespace qact::report {

struct SeverityMetric {
  const char *key, *axis, *meaning;
  double scale;  // axis value = scale * row value
  const char* format;
};
std::span<const SeverityMetric> severity_metrics();

// The spec is null where no curve has the metric.
Chart severity_chart(const std::string& name, const SeverityMetric& metric,
                     const std::vector<const Curve*>& curves,
                     const std::vector<std::string>& corruptions);

}  // namespace qact::report
