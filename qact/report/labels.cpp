#include "qact/report/labels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace qact::report {
namespace {

struct Activation {
  const char *name, *written;
  std::vector<const char*> colours;  // readable on white and on near-black
};

const std::vector<Activation>& activations() {
  static const std::vector<Activation> all = {
      {"qact", "QAct", {"#2f7ed8", "#2aa198", "#7a5bd0", "#4fb3dd", "#5b6fc9", "#3d9970"}},
      {"relu", "ReLU", {"#d9742b", "#8d949e", "#b5563c", "#a08a6e", "#7d5a45"}},
      {"bn-relu", "BatchNorm + ReLU", {"#c9a227", "#8f7a1f", "#e0c25c"}},
      {"prelu", "PReLU", {"#c9508a", "#d98fb4", "#a34a72"}},
      {"selu", "SELU", {"#7aa83a", "#a9bf6a", "#5f7f3a"}},
  };
  return all;
}

struct Mode {
  const char *name, *written;
  std::vector<int> dash;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {"batch", "batch statistics", {}},
      {"tracked", "kept statistics", {6, 3}},
      {"prior", "prior", {2, 2}},
      {"stream", "stream", {8, 3, 2, 3}},
      {"augment", "augmented copies", {1, 3}},
      {"dataset", "whole set's statistics", {12, 3}},
  };
  return all;
}

template <class Table>
size_t index_in(const Table& table, const std::string& name) {
  return static_cast<size_t>(
      std::find_if(table.begin(), table.end(), [&](const auto& e) { return name == e.name; }) -
      table.begin());
}

std::string classifier_name(const std::string& classifier) {
  static const std::map<std::string, std::string> names = {{"head", "own head"},
                                                           {"quantile", "quantile classifier"},
                                                           {"logistic", "logistic regression"}};
  const auto found = names.find(classifier);
  return found == names.end() ? classifier : found->second;
}

// Whether a part of the setting takes several values among the curves.
template <class Part>
bool varies(const std::vector<Curve>& curves, const Part& part) {
  return std::any_of(curves.begin(), curves.end(), [&](const Curve& curve) {
    return part(curve.setting) != part(curves[0].setting);
  });
}

std::string label_of(const Setting& s, const Group& group) {
  const std::vector<Curve>& curves = group.curves;
  std::set<std::string> placements;  // of this activation
  for (const Curve& curve : curves) {
    if (curve.setting.activation == s.activation) placements.insert(curve.setting.placement);
  }
  std::string label = activation_name(s.activation);
  if (placements.size() > 1) label += " " + s.placement;
  if (s.loss != group.loss) label += ", " + s.loss;
  if (s.classifier != group.classifier) label += ", " + classifier_name(s.classifier);
  if (!s.adapt.empty() && s.adapt != "none") label += ", " + s.adapt;
  label += ", " + mode_name(s);
  if (varies(curves, [](const Setting& x) { return x.batch_size; })) {
    label += ", batches of " + std::to_string(s.batch_size);
  }
  return label;
}

}  // namespace

std::string activation_name(const std::string& activation) {
  const size_t at = index_in(activations(), activation);
  return at == activations().size() ? activation : activations()[at].written;
}

std::string mode_name(const Setting& setting) {
  const size_t at = index_in(modes(), setting.mode);
  std::string name = at == modes().size() ? setting.mode : modes()[at].written;
  if (setting.mode == "prior") name += " of " + fixed(setting.prior, 0);
  return name;
}

std::tuple<int, std::string, std::string, std::string, std::string, int> order_of(
    const Setting& s) {
  return {static_cast<int>(index_in(activations(), s.activation)),
          s.placement,
          s.loss,
          s.classifier,
          s.adapt,
          static_cast<int>(index_in(modes(), s.mode))};
}

void name_and_colour(Group& group) {
  std::map<Setting, std::string> colours;  // of settings without their mode
  std::map<std::string, size_t> used;      // of each activation
  const auto colour = [&](Setting s) {
    s.mode = "", s.prior = 0;
    const auto [found, fresh] = colours.emplace(s, "#a06cd5");
    const size_t activation = index_in(activations(), s.activation);
    if (fresh && activation < activations().size()) {
      const auto& hue = activations()[activation].colours;
      found->second = hue[used[s.activation]++ % hue.size()];
    }
    return found->second;
  };
  // Those that most charts show choose first.
  for (const bool usual : {true, false}) {
    for (Curve& curve : group.curves) {
      if (group.is_usual(curve.setting) == usual) curve.colour = colour(curve.setting);
    }
  }
  for (Curve& curve : group.curves) {
    curve.label = label_of(curve.setting, group);
    const size_t mode = index_in(modes(), curve.setting.mode);
    if (mode < modes().size()) curve.dash = modes()[mode].dash;
  }
}

}  // namespace qact::report
