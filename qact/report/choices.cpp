#include "qact/report/choices.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace qact::report {
namespace {

using results::kGamma4;

// What an image is classified as depends on no other one, so that the stream does not matter. Of
// running statistics this holds in a batch of any size.
bool is_alone(const Setting& s) {
  return s.stream == kSingle && s.adapt == kNotAdapted &&
         (s.mode == "tracked" || s.mode == "augment" || (s.mode == "prior" && s.batch_size == 1));
}

// Whether it depends on what shares a batch, or came before. Statistics of all test images are
// nothing that arrives.
bool is_together(const Setting& s) {
  return !is_alone(s) && (s.mode == "batch" || s.mode == "prior" || s.mode == "stream");
}

struct Arrival {
  std::string stream;  // empty: single images
  int64_t batch_size = 0;

  // Single images last; else single corruptions first, larger batches first.
  auto key() const {
    const bool one_corruption = stream == kSingle;
    return std::tuple(stream.empty(), !one_corruption, stream == "correlated", stream, -batch_size);
  }
  bool operator<(const Arrival& other) const { return key() < other.key(); }

  bool includes(const Setting& s) const {
    return is_alone(s) || (is_together(s) && s.stream == stream && s.batch_size == batch_size);
  }

  std::string text() const {
    if (stream.empty()) return "single images";
    const std::string batches =
        batch_size == 1 ? "one image after the other" : "batches of " + std::to_string(batch_size);
    if (stream == kSingle) return batches + " of one corruption";
    if (stream == "mixed") return batches + " of mixed corruptions";
    if (stream == "correlated") return batches + " with correlated labels";
    return batches + " of the stream " + stream;
  }
};

std::set<Arrival> arrivals(const Group& group) {
  std::set<Arrival> all;
  for (const Curve& curve : group.curves) {
    const Setting& s = curve.setting;
    if (!group.is_usual(s)) continue;
    if (is_together(s)) all.insert({s.stream, s.batch_size});
    if (is_alone(s)) all.insert({"", 0});
  }
  return all;
}

double at_most(const Group& group, const Curve& curve,
               const std::vector<std::string>& corruptions) {
  return 100 * curve.mean("accuracy", group.max_severity, corruptions);
}

double clean(const Curve& curve, const Choice& choice) {
  return 100 * curve.mean("accuracy", 0, choice.corruptions);
}

void add_choice(const Group& group, const Arrival& arrival,
                const std::vector<std::string>& corruptions, std::vector<Choice>& all) {
  std::vector<const Curve*> candidates;
  bool own = arrival.stream.empty();  // else single images alone would answer for batches
  for (const Curve& curve : group.curves) {
    const bool measured = std::isfinite(at_most(group, curve, corruptions));
    if (!measured || !group.is_usual(curve.setting) || !arrival.includes(curve.setting)) continue;
    candidates.push_back(&curve);
    own |= !is_alone(curve.setting);
  }
  if (!own) return;
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Curve* a, const Curve* b) {
    return at_most(group, *a, corruptions) > at_most(group, *b, corruptions);
  });
  for (const Curve* next : candidates) {
    if (next->setting.activation == candidates[0]->setting.activation) continue;
    all.push_back({arrival.text(), corruptions, candidates[0], next});
    return;
  }
}

// "at severity 5", or "under gamma4".
std::string where(const Group& group, const Choice& choice) {
  if (choice.corruptions == std::vector<std::string>{kGamma4})
    return std::string("under ") + kGamma4;
  return "at severity " + std::to_string(group.max_severity);
}

}  // namespace

std::vector<Choice> choices(const Group& group) {
  std::vector<Choice> all;
  for (const Arrival& arrival : arrivals(group)) {
    if (!group.corruptions.empty()) add_choice(group, arrival, group.corruptions, all);
    if (arrival.stream == kSingle || arrival.stream.empty()) {
      add_choice(group, arrival, {kGamma4}, all);
    }
  }
  return all;
}

Table choices_table(const Group& group, const std::vector<Choice>& choices) {
  Table table{.columns = {{"what arrives"}, {"network"}, {"clean", true}, {"corrupted", true}},
              .rows = {}};
  for (const Choice& choice : choices) {
    const auto add = [&](const std::string& title, const Curve& curve) {
      table.rows.push_back({title, curve.label, fixed(clean(curve, choice), 1),
                            fixed(at_most(group, curve, choice.corruptions), 1)});
    };
    add(choice.arrives + ", " + where(group, choice), *choice.best);
    add("best of another activation", *choice.next);
  }
  table.caption =
      "What to take: of all activations and ways of inference the one with the highest accuracy, "
      "in "
      "per cent, and below it the best one of another activation. With running statistics an image "
      "is classified alone, so those take part in every line. The tone curve x^4 (gamma4) is no "
      "part of the mean over corruptions.";
  return table;
}

std::vector<std::string> choices_text(const Group& group, const std::vector<Choice>& choices) {
  std::vector<std::string> lines;
  for (const Choice& choice : choices) {
    const auto percent = [&](const Curve& curve) {
      return curve.label + ", " + fixed(at_most(group, curve, choice.corruptions), 1) + " %";
    };
    lines.push_back("For " + choice.arrives + ", " + where(group, choice) + ": " +
                    percent(*choice.best) + "; of another activation " + percent(*choice.next) +
                    ".");
  }
  return lines;
}

std::vector<const Curve*> headline(const Group& group) {
  const auto is_measured = [&](const Curve& curve) {
    const auto points = series_of(curve, "accuracy", group.corruptions).points;
    return std::any_of(points.begin(), points.end(), [](const auto& p) { return p.severity > 0; });
  };
  const auto rank = [](const Curve& c) {
    return std::tuple(c.setting.placement == "split", c.severities().size(), c.seeds().size(),
                      c.setting.batch_size);
  };
  const Curve* ours = nullptr;
  for (const Curve& curve : group.curves) {
    const Setting& s = curve.setting;
    if (s.activation != "qact" || s.mode != "batch" || !group.is_plain(s)) continue;
    if (!is_measured(curve)) continue;
    if (!ours || rank(curve) > rank(*ours)) ours = &curve;
  }
  if (!ours) return {};
  const Curve* plain = group.closest(ours->setting, "relu", "tracked");
  const Curve* adapted = group.closest(ours->setting, "relu", "batch");
  if (!plain || !adapted || !is_measured(*plain) || !is_measured(*adapted)) return {};
  return {plain, adapted, ours};
}

}  // namespace qact::report
