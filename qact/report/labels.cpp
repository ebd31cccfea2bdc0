#include "qact/report/labels.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "qact/results/fields.h"

namespace qact::report {
namespace {

struct Activation {
  const char *name, *label;
  std::vector<const char*> colours;  // readable on white and on near-black
};

const std::vector<Activation>& activations() {
  static const std::vector<Activation> all = {
      {"qact", "QAct", {"#2f7ed8", "#2aa198", "#7a5bd0", "#4fb3dd", "#5b6fc9", "#3d9970"}},
      {"relu", "ReLU", {"#d9742b", "#8d949e", "#b5563c", "#a08a6e", "#7d5a45"}},
      {"bn-relu", "BatchNorm + ReLU", {"#c9a227", "#8f7a1f", "#e0c25c"}},
      {"ibn-relu", "InstanceNorm/BatchNorm + ReLU", {"#b08d57", "#8a6d3b", "#cdb07d"}},
      {"prelu", "PReLU", {"#c9508a", "#d98fb4", "#a34a72"}},
      {"selu", "SELU", {"#7aa83a", "#a9bf6a", "#5f7f3a"}},
  };
  return all;
}

struct Mode {
  const char *name, *label;
  std::vector<int> dash;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {"batch", "batch statistics", {}},
      {"tracked", "running statistics", {6, 3}},
      {"prior", "prior", {2, 2}},
      {"stream", "stream", {8, 3, 2, 3}},
      {"augment", "augmented copies", {1, 3}},
      {"dataset", "dataset statistics", {12, 3}},
  };
  return all;
}

struct Named {
  const char *name, *label;
};

const std::vector<Named>& streams() {
  static const std::vector<Named> all = {{"single", "one corruption at a time"},
                                         {"mixed", "mixed corruptions"},
                                         {"correlated", "correlated labels"}};
  return all;
}

const std::vector<Named>& methods() {
  static const std::vector<Named> all = {{"none", "no adaptation"}, {"tent", "TENT"}};
  return all;
}

template <class Table>
size_t index_in(const Table& table, const std::string& name) {
  return static_cast<size_t>(
      std::find_if(table.begin(), table.end(), [&](const auto& e) { return name == e.name; }) -
      table.begin());
}

// A name that is not in the table stays as it is.
template <class Table>
std::string name_in(const Table& table, const std::string& name) {
  const size_t at = index_in(table, name);
  return at == table.size() ? name : table[at].label;
}

std::string classifier_name(const std::string& classifier) {
  static const std::map<std::string, std::string> names = {{"head", "network's head"},
                                                           {"quantile", "quantile classifier"},
                                                           {"logistic", "logistic regression"}};
  const auto found = names.find(classifier);
  return found == names.end() ? classifier : found->second;
}

// The fields that have several values among the curves. A missing field is no value, except for
// training options, where it is one more.
std::set<std::string> varying(const std::vector<Curve>& curves) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> options;  // of training: the number of curves that have it
  for (const Curve& curve : curves) {
    for (const results::Field& field : results::fields_of(curve.setting)) {
      if (field.value != "none" || field.training) values[field.name].insert(field.value);
      if (field.training) ++options[field.name];
    }
  }
  std::set<std::string> names;
  for (const auto& [name, all] : values) {
    if (all.size() > 1) names.insert(name);
  }
  for (const auto& [name, count] : options) {
    if (count < curves.size()) names.insert(name);
  }
  return names;
}

std::string shortened(const std::string& hash) { return hash.substr(0, 8); }

// Of running statistics only where it tells two curves apart: the result is the same.
bool matters_batch_size(const Setting& s, const Group& group) {
  return s.mode != "tracked" ||
         std::any_of(group.curves.begin(), group.curves.end(), [&](const Curve& other) {
           Setting same = other.setting;
           same.batch_size = s.batch_size;
           return same == s && other.setting.batch_size != s.batch_size;
         });
}

// Contains all fields that vary, so that no two curves have the same label.
std::string label_of(const Setting& s, const Group& group, const std::set<std::string>& vary) {
  static const std::set<std::string> kNamed = {"dataset", "model",      "activation", "placement",
                                               "loss",    "classifier", "adapt",      "mode",
                                               "prior",   "stream"};
  std::set<std::string> placements;  // of this activation
  for (const Curve& curve : group.curves) {
    if (curve.setting.activation == s.activation) placements.insert(curve.setting.placement);
  }
  std::string label = activation_name(s.activation);
  if (placements.size() > 1) label += " " + s.placement;
  if (s.loss != group.loss) label += ", " + s.loss;
  if (s.classifier != group.classifier) label += ", " + classifier_name(s.classifier);
  if (s.adapt != "none") label += ", " + name_in(methods(), s.adapt);
  const std::vector<results::Field> fields = results::fields_of(s);
  const auto add = [&](bool training) {
    for (const results::Field& field : fields) {
      if (field.training != training || !vary.contains(field.name)) continue;
      if (kNamed.contains(field.name) || (field.value == "none" && !training)) continue;
      if (field.name == "batch_size" && !training && !matters_batch_size(s, group)) continue;
      label += ", " + in_words(field);
    }
  };
  add(/*training=*/true);
  label += ", " + mode_name(s);
  if (s.stream != kSingle) label += ", " + name_in(streams(), s.stream);
  add(/*training=*/false);
  if (!s.data_hash.empty()) label += ", images " + shortened(s.data_hash);
  if (!s.model_hash.empty()) label += ", model " + shortened(s.model_hash);
  return label;
}

}  // namespace

std::string in_words(const results::Field& field) {
  if (field.name == "batch_size") return "batches of " + field.value;
  if (field.name == "limit") return field.value == "0" ? "all images" : field.value + " images";
  if (field.name == "clean_hash") return "data " + shortened(field.value);
  if (field.name == "source") return field.value + " corruptions";
  std::string name = field.name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return name + " " + field.value;
}

std::string activation_name(const std::string& activation) {
  return name_in(activations(), activation);
}

std::string mode_name(const Setting& setting) {
  std::string name = name_in(modes(), setting.mode);
  if (setting.prior) {
    const double prior = *setting.prior;
    name += " of " + (prior == std::floor(prior) ? fixed(prior, 0) : Json(prior).dump());
  }
  return name;
}

SortKey order_of(const Setting& s) {
  return {index_in(streams(), s.stream),
          index_in(activations(), s.activation),
          s.placement,
          s.loss,
          s.classifier,
          index_in(methods(), s.adapt),
          index_in(modes(), s.mode)};
}

void name_and_colour(Group& group) {
  std::map<Setting, std::string> colours;  // of settings without their mode and stream
  std::map<std::string, size_t> used;      // of each activation
  const auto colour = [&](Setting s) {
    s.mode = "", s.prior = {}, s.copies = {}, s.momentum = {};
    s.stream = "", s.mixture = {};
    const auto [found, fresh] = colours.emplace(s, "#a06cd5");
    const size_t activation = index_in(activations(), s.activation);
    if (fresh && activation < activations().size()) {
      const auto& hue = activations()[activation].colours;
      found->second = hue[used[s.activation]++ % hue.size()];
    }
    return found->second;
  };
  // The usual ones first, and of them the complete ones: most charts show them.
  std::vector<Curve*> shown;
  for (Curve& curve : group.curves) shown.push_back(&curve);
  const auto rank = [&](const Curve* curve) {
    return std::pair(group.is_usual(curve->setting), curve->severities().size());
  };
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const Curve* a, const Curve* b) { return rank(a) > rank(b); });
  for (Curve* curve : shown) curve->colour = colour(curve->setting);
  const std::set<std::string> vary = varying(group.curves);
  std::map<std::string, int> count;  // of each label
  for (Curve& curve : group.curves) {
    curve.label = label_of(curve.setting, group, vary);
    ++count[curve.label];
    const size_t mode = index_in(modes(), curve.setting.mode);
    if (mode < modes().size()) curve.dash = modes()[mode].dash;
  }
  // Curves that differ in a field that one of them does not have, too.
  for (Curve& curve : group.curves) {
    const std::string size = "batches of " + std::to_string(curve.setting.batch_size);
    if (count[curve.label] > 1) curve.label += ", " + size;
  }
}

}  // namespace qact::report
