#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "qact/report/curves.h"
#include "qact/report/sections.h"
#include "qact/results/disambiguate.h"

namespace qact::report {
namespace {

constexpr size_t kMaxPanels = 9;
constexpr size_t kMaxBars = 30;  // neurons of a dense layer have few values
constexpr int kAllChannels = -1;
constexpr int kRunning = -1;  // in place of a severity: running contexts, from training
constexpr const char* kClean = "none";

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
          row.at("severity").is_null() ? kRunning : results::field<int>(row, "severity"),
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
Range central_range(const Histogram& h) {
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

// Of each panel, over all severities: they share its axis.
std::map<std::string, Range> panel_ranges(const std::vector<Histogram>& histograms) {
  std::map<std::string, Range> all;
  for (const Histogram& h : histograms) {
    const Range own = central_range(h);
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
  size_t first = bin_at(range.low), count = bin_at(range.high) - first;
  size_t merged = (count + kMaxBars - 1) / kMaxBars;
  if (merged > 1 && bins % merged != 0) merged = 1;
  if (merged > 1) count = (count + merged - 1) / merged * merged;
  first = std::min(first, bins - count);
  const Json severity = h.severity == kRunning ? Json("running") : Json(h.severity);
  for (size_t b = first; b < first + count; b += merged) {
    const auto from = h.counts.begin() + static_cast<std::ptrdiff_t>(b);
    const double sum = std::accumulate(from, from + static_cast<std::ptrdiff_t>(merged), 0.0);
    const double centre = static_cast<double>(b) + 0.5 * static_cast<double>(merged);
    values.push_back({{"panel", h.panel()},
                      {"value", h.low + centre * h.width},
                      {"share", sum / h.total},
                      {"severity", severity}});
  }
}

// At most kMaxPanels, spread evenly from the first to the last: a network may have many layers.
std::vector<std::string> spread(const std::vector<std::string>& panels) {
  if (panels.size() <= kMaxPanels) return panels;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < kMaxPanels; ++i) {
    chosen.push_back(panels[i * (panels.size() - 1) / (kMaxPanels - 1)]);
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
  names = spread(names);
  std::set<int> severities;
  Json values = Json::array();
  auto range = panel_ranges(histograms);
  for (const Histogram& h : histograms) {
    if (std::find(names.begin(), names.end(), h.panel()) == names.end()) continue;
    add_values(h, range[h.panel()], values);
    severities.insert(h.severity);
  }
  const bool running = severities.erase(kRunning) > 0;
  Json spec =
      chart(title + (severities.empty() ? "" : ", one line for each severity"), Shape::full);
  spec["data"] = {{"values", std::move(values)}};
  spec["facet"] = {{"field", "panel"}, {"type", "nominal"}, {"title", nullptr}, {"sort", names}};
  set_columns(spec, static_cast<int>(std::min<size_t>(3, names.size())), /*square=*/false);
  spec["resolve"] = {{"scale", {{"x", "independent"}, {"y", "independent"}}}};
  spec["spec"] = {{"width", 240},
                  {"height", 130},
                  {"params", legend_selection("severity")},
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
                    {"color", severity_colour("severity", severities, running)},
                    {"opacity", selection_opacity(0.9, 0.08)},
                    {"tooltip",
                     {{{"field", "severity"}},
                      {{"field", "value"}, {"format", ".3f"}},
                      {{"field", "share"}, {"format", ".2%"}}}}}}};
  return {name, caption, std::move(spec)};
}

struct Kind {
  const char *what, *title;
};
constexpr Kind kKinds[] = {{"preactivation", "Pre-activations"},
                           {"activation", "Activations"},
                           {"context", "Running contexts"}};

// Rows hold the contexts as training left them; the mode decides how they are used.
std::string use_of_contexts(const std::string& mode) {
  if (mode == "tracked") return ", from training, in which values are ranked";
  if (mode == "prior" || mode == "stream") return ", from training, to which test images add";
  return ", from training; here values are ranked among the test images instead";
}

std::string caption_of(const Kind& kind, bool neurons, const std::string& mode,
                       const std::string& corruption) {
  std::string caption =
      std::string(kind.title) + (neurons ? " of chosen neurons" : " of whole layers");
  if (kind.what == std::string("context")) caption += use_of_contexts(mode);
  return caption + (corruption.empty() ? "." : ", under " + corruption + ".");
}

// The histograms of one network, seed and corruption; those of clean images belong to every
// corruption.
struct HistogramSet {
  results::Evaluation first;  // row
  std::string corruption;

  bool has(const results::Evaluation& e) const {
    return e.setting == first.setting && e.seed == first.seed && e.model_hash == first.model_hash &&
           (e.corruption == corruption || e.corruption == kClean);
  }
};

std::vector<HistogramSet> histogram_sets(const std::vector<results::Evaluation>& all) {
  std::vector<HistogramSet> sets;
  // Corrupted ones first, so that clean rows make a set only where there is no corruption.
  for (const bool corrupted : {true, false}) {
    for (const results::Evaluation& e : all) {
      if ((e.corruption != kClean) != corrupted) continue;
      const auto has_it = [&](const HistogramSet& set) { return set.has(e); };
      if (std::none_of(sets.begin(), sets.end(), has_it)) sets.push_back({e, e.corruption});
    }
  }
  return sets;
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
  for (const HistogramSet& set : histogram_sets(all)) {
    const Setting& setting = set.first.setting;
    blocks.push_back(
        Heading{setting.dataset + ", " + setting.model + ", " + label_of(set.first, networks)});
    ++number;
    for (const bool neurons : {false, true}) {
      for (const Kind& kind : kKinds) {
        std::vector<Histogram> chosen;
        std::string corruption;
        for (const results::Evaluation& e : all) {
          if (!set.has(e)) continue;
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
