#include "qact/report/comparisons.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

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

// The batch sizes of curves, the usual one first, then from large to small.
std::vector<int64_t> batch_sizes(const Curves& curves) {
  std::set<int64_t, std::greater<>> sizes;
  std::pair<size_t, int64_t> usual = {0, 0};  // its severities
  for (const Curve* curve : curves) {
    sizes.insert(curve->setting.batch_size);
    usual = std::max(usual, {curve->severities().size(), curve->setting.batch_size});
  }
  std::vector<int64_t> all(sizes.begin(), sizes.end());
  const auto first = std::find(all.begin(), all.end(), usual.second);
  if (first != all.end()) std::rotate(all.begin(), first, first + 1);
  return all;
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
  const auto add = [&](const std::string& name, const std::string& title, Curves curves,
                       const char* note = "") {
    if (!curves.empty()) all.push_back({name, title, std::move(curves), note});
  };
  const Curves plain = select(group, [&](const Setting& s) { return group.is_plain(s); });
  for (const int64_t size : batch_sizes(plain)) {
    const bool first = all.empty();
    const std::string number = std::to_string(size);
    add(first ? "" : "batches_of_" + number + "_",
        first ? "activations and inference modes" : "in batches of " + number,
        select(group, [&](const Setting& s) { return group.is_plain(s) && s.batch_size == size; }));
  }
  std::set<int64_t> adapted;  // batch sizes
  const Curves methods =
      select(group, [&](const Setting& s) { return group.is_usual(s) && s.stream == kSingle; });
  for (const Curve* curve : methods) {
    if (curve->setting.adapt != kNotAdapted) adapted.insert(curve->setting.batch_size);
  }
  const Curves beside = select(group, [&](const Setting& s) {
    return group.is_usual(s) && s.stream == kSingle && adapted.contains(s.batch_size);
  });
  if (several(methods, [](const Setting& s) { return s.adapt; })) {
    add("adaptation_", "test-time adaptation", beside, kTentNote);
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
