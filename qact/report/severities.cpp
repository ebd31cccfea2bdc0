#include <algorithm>
#include <cmath>
#include <set>

#include "qact/report/curves.h"
#include "qact/report/section.h"
#include "qact/report/severity_chart.h"

namespace qact::report {
namespace {

using Curves = std::vector<const Curve*>;

// Curves that answer one question, as the paper's figures do.
struct Comparison {
  const char *name, *title;
  Curves curves;
};

template <class Keep>
Curves those(const Group& group, const Keep& keep) {
  Curves chosen;
  for (const Curve& curve : group.curves) {
    if (keep(curve.setting)) chosen.push_back(&curve);
  }
  return chosen;
}

// Several values of this part of the setting?
template <class Part>
bool several(const Curves& curves, const Part& part) {
  std::set<std::string> values;
  for (const Curve* curve : curves) values.insert(part(curve->setting));
  return values.size() > 1;
}

std::vector<Comparison> comparisons(const Group& group) {
  std::vector<Comparison> all = {
      {"", "activations and ways of inference",
       those(group, [&](const Setting& s) { return group.is_usual(s); })}};
  const Curves losses =
      those(group, [&](const Setting& s) { return s.activation == "qact" && s.mode == "batch"; });
  if (several(losses, [](const Setting& s) { return s.loss; })) {
    all.push_back({"losses_", "losses, with QAct and batch statistics", losses});
  }
  const Curves classifiers =
      those(group, [&](const Setting& s) { return s.loss == group.loss && s.mode == "batch"; });
  if (several(classifiers, [](const Setting& s) { return s.classifier; })) {
    all.push_back({"classifiers_", "classifiers on the same embeddings", classifiers});
  }
  return all;
}

}  // namespace

// The paper's figures 2 to 12.
std::vector<Block> severities(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.most == 0 || group.distortions.empty()) continue;
    for (const Comparison& comparison : comparisons(group)) {
      blocks.push_back(Heading{group.title() + ": " + comparison.title});
      for (const SeverityMetric& metric : severity_metrics()) {
        Chart chart = severity_chart(group.slug(comparison.name + std::string(metric.key)), metric,
                                     comparison.curves, group.distortions);
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
    Curves shown;
    for (const Curve& curve : group.curves) {
      const bool measured = std::isfinite(curve.mean("accuracy", group.most, {kTone}));
      if (measured && group.is_usual(curve.setting)) shown.push_back(&curve);
    }
    if (group.most == 0 || shown.empty()) continue;
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
