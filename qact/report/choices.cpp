#include "qact/report/choices.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "qact/report/labels.h"

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

using Curves = std::vector<const Curve*>;

// The curves to choose from, apart where they are of different images: those of most images first,
// and of each part the best curve.
std::vector<Curves> candidates(const Group& group, const Arrival& arrival,
                               const std::vector<std::string>& corruptions) {
  std::vector<Curves> parts;
  for (const Curve& curve : group.curves) {
    const Setting& s = curve.setting;
    const bool measured = std::isfinite(at_most(group, curve, corruptions));
    if (!measured || !group.is_usual(s) || !arrival.includes(s)) continue;
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Curves& other) {
      return image_fields(other[0]->setting, corruptions) == image_fields(s, corruptions);
    });
    if (part == parts.end()) part = parts.insert(part, Curves());
    part->push_back(&curve);
  }
  for (Curves& part : parts) {
    std::stable_sort(part.begin(), part.end(), [&](const Curve* a, const Curve* b) {
      return at_most(group, *a, corruptions) > at_most(group, *b, corruptions);
    });
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Curves& a, const Curves& b) {
    const auto rank = [](const Curves& part) {
      const int64_t limit = part[0]->setting.limit;
      return std::pair(limit == 0, limit);
    };
    return rank(a) > rank(b);
  });
  return parts;
}

// ", 1000 images": what distinguishes the images of a part from those of the others.
std::string images_apart(const Curves& part, const std::vector<Curves>& parts,
                         const std::vector<std::string>& corruptions) {
  std::string text;
  for (const results::Field& field : image_fields(part[0]->setting, corruptions)) {
    const bool differs = std::any_of(parts.begin(), parts.end(), [&](const Curves& other) {
      const auto fields = image_fields(other[0]->setting, corruptions);
      return std::find(fields.begin(), fields.end(), field) == fields.end();
    });
    if (differs && field.value != "none") text += ", " + in_words(field);
  }
  return text;
}

void add_choices(const Group& group, const Arrival& arrival,
                 const std::vector<std::string>& corruptions, std::vector<Choice>& all) {
  const std::vector<Curves> parts = candidates(group, arrival, corruptions);
  for (const Curves& part : parts) {
    const bool alone = std::all_of(part.begin(), part.end(),
                                   [](const Curve* curve) { return is_alone(curve->setting); });
    if (alone && !arrival.stream.empty()) continue;  // single images would answer for batches
    const auto next = std::find_if(part.begin(), part.end(), [&](const Curve* curve) {
      return curve->setting.activation != part[0]->setting.activation;
    });
    if (next == part.end()) continue;
    all.push_back(
        {arrival.text() + images_apart(part, parts, corruptions), corruptions, part[0], *next});
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
    if (!group.corruptions.empty()) add_choices(group, arrival, group.corruptions, all);
    if (arrival.stream == kSingle || arrival.stream.empty()) {
      add_choices(group, arrival, {kGamma4}, all);
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
      "What to take: of all activations and ways of inference the one with the highest accuracy on "
      "the same images, in per cent, and below it the best one of another activation. With running "
      "statistics, with augmented copies and with a prior in batches of 1 an image is classified "
      "alone, so those take part in every line. The tone curve x^4 (gamma4) is no part of the mean "
      "over corruptions.";
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
  std::vector<const Curve*> best;
  for (const Curve& ours : group.curves) {
    const Setting& s = ours.setting;
    if (s.activation != "qact" || s.mode != "batch" || !group.is_plain(s)) continue;
    const Curve* plain = group.closest(s, "relu", "tracked");
    const Curve* adapted = group.closest(s, "relu", "batch");
    if (!plain || !adapted) continue;
    if (!is_measured(*plain) || !is_measured(*adapted) || !is_measured(ours)) continue;
    if (best.empty() || rank(ours) > rank(*best.back())) best = {plain, adapted, &ours};
  }
  return best;
}

}  // namespace qact::report
