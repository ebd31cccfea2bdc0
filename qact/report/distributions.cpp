#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "qact/report/curves.h"
#include "qact/report/section.h"

namespace qact::report {
namespace {

constexpr size_t kMostPanels = 9;
constexpr size_t kBars = 30;  // at most: neurons of a dense layer have few values
constexpr int kAllChannels = -1;
constexpr int kKept = -1;  // as severity: what was kept from training
constexpr const char* kUncorrupted = "none";

// Equal bins upwards of `low`.
struct Histogram {
  std::string layer, what;
  int layer_index, channel, severity;
  double low, width;
  std::vector<double> counts;
  double below, total;  // with those outside the bins

  std::string panel() const {
    return channel == kAllChannels ? layer : layer + ", neuron " + std::to_string(channel);
  }
};

Histogram read(const results::Row& row) {
  auto counts = results::field<std::vector<double>>(row, "counts");
  const auto low = results::field<double>(row, "low"), high = results::field<double>(row, "high");
  const double below = row.value("below", 0.0), above = row.value("above", 0.0);
  const double total = std::accumulate(counts.begin(), counts.end(), below + above);
  const double width = (high - low) / static_cast<double>(counts.size());
  return {results::field<std::string>(row, "layer"),
          results::field<std::string>(row, "what"),
          results::field<int>(row, "layer_index"),
          results::field<int>(row, "channel"),
          row.at("severity").is_null() ? kKept : results::field<int>(row, "severity"),
          low,
          width,
          std::move(counts),
          below,
          total};
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
};

// The bins that hold all but the outer thousandths of the values, and their neighbours.
Range middle(const Histogram& h) {
  size_t first = h.counts.size(), last = 0;
  double before = h.below;
  for (size_t b = 0; b < h.counts.size(); ++b) {
    const double with = before + h.counts[b];
    if (with > 0.001 * h.total && before < 0.999 * h.total) {
      first = std::min(first, b > 0 ? b - 1 : 0);
      last = std::min(b + 2, h.counts.size());
    }
    before = with;
  }
  if (first >= last) return {};
  return {h.low + static_cast<double>(first) * h.width,
          h.low + static_cast<double>(last) * h.width};
}

// Of all severities: they share a panel's axis.
std::map<std::string, Range> ranges(const std::vector<Histogram>& histograms) {
  std::map<std::string, Range> all;
  for (const Histogram& h : histograms) {
    const Range own = middle(h);
    Range& range = all[h.panel()];
    range = {std::min(range.low, own.low), std::max(range.high, own.high)};
  }
  return all;
}

// The bins within the range, several to a bar where they are many.
void add_values(const Histogram& h, const Range& range, Json& values) {
  const size_t bins = h.counts.size();
  const auto bin_at = [&](double value) {
    return static_cast<size_t>(
        std::clamp(std::round((value - h.low) / h.width), 0.0, static_cast<double>(bins)));
  };
  if (h.total == 0 || range.low >= range.high) return;
  size_t first = bin_at(range.low), kept = bin_at(range.high) - first;
  size_t merged = (kept + kBars - 1) / kBars;
  if (merged > 1 && bins % merged != 0) merged = 1;
  if (merged > 1) kept = (kept + merged - 1) / merged * merged;
  first = std::min(first, bins - kept);
  const Json severity = h.severity == kKept ? Json("kept") : Json(h.severity);
  for (size_t b = first; b < first + kept; b += merged) {
    const auto from = h.counts.begin() + static_cast<std::ptrdiff_t>(b);
    const double count = std::accumulate(from, from + static_cast<std::ptrdiff_t>(merged), 0.0);
    const double centre = static_cast<double>(b) + 0.5 * static_cast<double>(merged);
    values.push_back({{"panel", h.panel()},
                      {"value", h.low + centre * h.width},
                      {"share", count / h.total},
                      {"severity", severity}});
  }
}

// First, last and those evenly between: a network may have many layers.
std::vector<std::string> some(const std::vector<std::string>& panels) {
  if (panels.size() <= kMostPanels) return panels;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < kMostPanels; ++i) {
    chosen.push_back(panels[i * (panels.size() - 1) / (kMostPanels - 1)]);
  }
  return chosen;
}

Chart panels(const std::string& name, const std::string& title, const std::string& caption,
             std::vector<Histogram> histograms) {
  std::stable_sort(histograms.begin(), histograms.end(), [](const auto& a, const auto& b) {
    return std::pair(a.layer_index, a.channel) < std::pair(b.layer_index, b.channel);
  });
  std::vector<std::string> names;
  for (const Histogram& h : histograms) {
    if (std::find(names.begin(), names.end(), h.panel()) == names.end()) names.push_back(h.panel());
  }
  names = some(names);
  std::set<int> severities;
  Json values = Json::array();
  auto range = ranges(histograms);
  for (const Histogram& h : histograms) {
    if (std::find(names.begin(), names.end(), h.panel()) == names.end()) continue;
    add_values(h, range[h.panel()], values);
    severities.insert(h.severity);
  }
  const bool kept = severities.erase(kKept) > 0;
  Json spec =
      chart(title + (severities.empty() ? "" : ", one line for each severity"), Shape::full);
  spec["data"] = {{"values", std::move(values)}};
  spec["facet"] = {{"field", "panel"}, {"type", "nominal"}, {"title", nullptr}, {"sort", names}};
  set_columns(spec, static_cast<int>(std::min<size_t>(3, names.size())), /*square=*/false);
  spec["resolve"] = {{"scale", {{"x", "independent"}, {"y", "independent"}}}};
  spec["spec"] = {
      {"width", 240},
      {"height", 130},
      {"params",
       {{{"name", "pick"},
         {"select", {{"type", "point"}, {"fields", {"severity"}}}},
         {"bind", "legend"}}}},
      {"mark", {{"type", "line"}, {"interpolate", "step"}, {"strokeWidth", 1.6}}},
      {"encoding",
       {{"x",
         {{"field", "value"},
          {"type", "quantitative"},
          {"title", nullptr},
          {"scale", {{"zero", false}}},
          {"axis", {{"tickCount", 4}, {"grid", false}}}}},
        {"y",
         {{"field", "share"},
          {"type", "quantitative"},
          {"title", nullptr},
          {"axis", {{"format", "%"}, {"tickCount", 3}}}}},
        {"color", severity_colour("severity", severities, kept)},
        {"opacity", {{"condition", {{"param", "pick"}, {"value", 0.9}}}, {"value", 0.08}}},
        {"tooltip",
         {{{"field", "severity"}},
          {{"field", "value"}, {"format", ".3f"}},
          {{"field", "share"}, {"format", ".2%"}}}}}}};
  return {name, caption, std::move(spec)};
}

struct Kind {
  const char *what, *title;
};
constexpr Kind kKinds[] = {
    {"preactivation", "Pre-activations"}, {"activation", "Activations"}, {"context", "Contexts"}};

// Rows hold contexts as training left them, whatever the mode makes of these.
std::string use_of_contexts(const std::string& mode) {
  if (mode == "tracked") return ", kept from training, in which values are ranked";
  if (mode == "prior" || mode == "stream") return ", kept from training, which test images add to";
  return ", kept from training; here values are ranked among the test images instead";
}

std::string caption_of(const Kind& kind, bool neurons, const std::string& mode,
                       const std::string& corruption) {
  std::string caption =
      std::string(kind.title) + (neurons ? " of chosen neurons" : " of whole layers");
  if (kind.what == std::string("context")) caption += use_of_contexts(mode);
  return caption + (corruption.empty() ? "." : ", under " + corruption + ".");
}

// One network, one seed and one corruption; uncorrupted images belong to each.
struct Diagnosed {
  results::Evaluation of;  // the first row
  std::string corruption;

  bool has(const results::Evaluation& e) const {
    return e.setting == of.setting && e.seed == of.seed && e.model_hash == of.model_hash &&
           (e.corruption == corruption || e.corruption == kUncorrupted);
  }
};

std::vector<Diagnosed> diagnosed(const std::vector<results::Evaluation>& all) {
  std::vector<Diagnosed> found;
  // First those with a corruption, so that uncorrupted rows stand alone only where there is none.
  for (const bool corrupted : {true, false}) {
    for (const results::Evaluation& e : all) {
      if ((e.corruption != kUncorrupted) != corrupted) continue;
      const auto known = [&](const Diagnosed& p) { return p.has(e); };
      if (std::none_of(found.begin(), found.end(), known)) found.push_back({e, e.corruption});
    }
  }
  return found;
}

}  // namespace

// The paper's third figure, of trained networks.
std::vector<Block> distributions(const results::Rows& rows) {
  std::vector<results::Evaluation> all = results::evaluations(rows);
  std::erase_if(all, [](const results::Evaluation& e) { return e.kind != "histogram"; });
  if (all.empty()) return {};
  const std::vector<Group> networks = groups(rows);
  std::vector<Block> blocks;
  int number = 0;
  for (const Diagnosed& diagnosed : diagnosed(all)) {
    const Setting& setting = diagnosed.of.setting;
    blocks.push_back(
        Heading{setting.dataset + ", " + setting.model + ", " + label_of(diagnosed.of, networks)});
    ++number;
    for (const bool neurons : {false, true}) {
      for (const Kind& kind : kKinds) {
        std::vector<Histogram> chosen;
        std::string corruption;
        for (const results::Evaluation& e : all) {
          if (!diagnosed.has(e)) continue;
          const Histogram h = read(rows[e.row]);
          if (h.what != kind.what || (h.channel != kAllChannels) != neurons) continue;
          chosen.push_back(h);
          if (h.severity > 0) corruption = e.corruption;
        }
        if (chosen.empty()) continue;
        blocks.push_back(panels("distribution_" + std::to_string(number) + "_" + kind.what +
                                    (neurons ? "_neurons" : ""),
                                kind.title, caption_of(kind, neurons, setting.mode, corruption),
                                chosen));
      }
    }
  }
  return blocks;
}

}  // namespace qact::report
