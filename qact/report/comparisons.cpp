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

constexpr const char* kTentNote =
    "TENT takes one step of Adam for each batch, which makes its predictions more certain; what "
    "learns are the scales and shifts of norms and quantile activations. It begins anew with every "
    "corruption and severity. The others take no step.";
constexpr const char* kMixedNote =
    "The images of all corruptions of one severity arrive in one shuffled stream, each image once "
    "per corruption, so that the statistics of a batch are those of the mixture. A corruption's "
    "score is that of its own images.";
constexpr const char* kCorrelatedNote =
    "The images of one corruption arrive class by class: each class is dealt to slots of time by "
    "shares from Dirichlet(0.1). A batch then holds few of the classes.";

}  // namespace

std::vector<Comparison> comparisons(const Group& group) {
  std::vector<Comparison> all;
  const auto add = [&](const char* name, const char* title, Curves curves, const char* note = "") {
    if (!curves.empty()) all.push_back({name, title, std::move(curves), note});
  };
  add("", "activations and inference modes",
      select(group, [&](const Setting& s) { return group.is_plain(s); }));
  const Curves methods =
      select(group, [&](const Setting& s) { return group.is_usual(s) && s.stream == kSingle; });
  if (several(methods, [](const Setting& s) { return s.adapt; })) {
    add("adaptation_", "test-time adaptation", methods, kTentNote);
  }
  const auto on_stream = [&](const char* stream) {
    return select(group, [&](const Setting& s) { return group.is_usual(s) && s.stream == stream; });
  };
  add("mixed_", "all corruptions of a severity mixed in every batch", on_stream("mixed"),
      kMixedNote);
  add("correlated_", "neighbours in the stream with the same label", on_stream("correlated"),
      kCorrelatedNote);
  const auto in_batch = [&](const Setting& s) {
    return s.mode == "batch" && s.stream == kSingle && s.adapt == kNotAdapted;
  };
  const Curves losses =
      select(group, [&](const Setting& s) { return s.activation == "qact" && in_batch(s); });
  if (several(losses, [](const Setting& s) { return s.loss; })) {
    add("losses_", "losses, with QAct and batch statistics", losses);
  }
  const Curves classifiers =
      select(group, [&](const Setting& s) { return s.loss == group.loss && in_batch(s); });
  if (several(classifiers, [](const Setting& s) { return s.classifier; })) {
    add("classifiers_", "classifiers on the same embeddings", classifiers);
  }
  return all;
}

}  // namespace qact::report
