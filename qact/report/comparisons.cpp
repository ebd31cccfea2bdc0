#include "qact/report/comparisons.h"

#include <set>

namespace qact::report {
namespace {

using Curves = std::vector<const Curve*>;

template <class Keep>
Curves select(const Group& group, const Keep& keep) {
  Curves chosen;
  for (const Curve& curve : group.curves) {
    if (keep(curve.setting)) chosen.push_back(&curve);
  }
  return chosen;
}

// Whether the curves have several values of a field.
template <class Field>
bool several(const Curves& curves, const Field& field) {
  std::set<std::string> values;
  for (const Curve* curve : curves) values.insert(field(curve->setting));
  return values.size() > 1;
}

}  // namespace

std::vector<Comparison> comparisons(const Group& group) {
  std::vector<Comparison> all = {
      {"", "activations and inference modes",
       select(group, [&](const Setting& s) { return group.is_usual(s); })}};
  const Curves losses =
      select(group, [&](const Setting& s) { return s.activation == "qact" && s.mode == "batch"; });
  if (several(losses, [](const Setting& s) { return s.loss; })) {
    all.push_back({"losses_", "losses, with QAct and batch statistics", losses});
  }
  const Curves classifiers =
      select(group, [&](const Setting& s) { return s.loss == group.loss && s.mode == "batch"; });
  if (several(classifiers, [](const Setting& s) { return s.classifier; })) {
    all.push_back({"classifiers_", "classifiers on the same embeddings", classifiers});
  }
  return all;
}

}  // namespace qact::report
