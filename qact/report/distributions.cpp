#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "qact/report/curves.h"
#include "qact/report/section.h"

namespace qact::report {
namespace {

constexpr size_t kMostPanels = 9;
constexpr size_t kBins = 30;  // at most: neurons of a dense layer have few values
constexpr int kAllChannels = -1;
constexpr int kKept = -1;  // as severity: what was kept from training

struct Histogram {
  const results::Row* row;
  std::string layer, what;
  int layer_index, channel, severity;

  std::string panel() const {
    return channel == kAllChannels ? layer : layer + ", neuron " + std::to_string(channel);
  }
};

Histogram read(const results::Row& row) {
  return {&row,
          results::field<std::string>(row, "layer"),
          results::field<std::string>(row, "what"),
          results::field<int>(row, "layer_index"),
          results::field<int>(row, "channel"),
          row.at("severity").is_null() ? kKept : results::field<int>(row, "severity")};
}

std::vector<int64_t> coarser(const std::vector<int64_t>& counts) {
  const size_t merged = (counts.size() + kBins - 1) / kBins;
  if (merged < 2 || counts.size() % merged != 0) return counts;
  std::vector<int64_t> sums(counts.size() / merged, 0);
  for (size_t b = 0; b < counts.size(); ++b) sums[b / merged] += counts[b];
  return sums;
}

void add_values(const Histogram& histogram, Json& values) {
  const results::Row& row = *histogram.row;
  const auto counts = coarser(results::field<std::vector<int64_t>>(row, "counts"));
  const auto low = results::field<double>(row, "low"), high = results::field<double>(row, "high");
  const int64_t outside = row.value("below", int64_t{0}) + row.value("above", int64_t{0});
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), outside));
  if (total == 0) return;
  const Json severity = histogram.severity == kKept ? Json("kept") : Json(histogram.severity);
  const double width = (high - low) / static_cast<double>(counts.size());
  for (size_t b = 0; b < counts.size(); ++b) {
    values.push_back({{"panel", histogram.panel()},
                      {"value", low + (static_cast<double>(b) + 0.5) * width},
                      {"share", static_cast<double>(counts[b]) / total},
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
  const bool kept = std::any_of(histograms.begin(), histograms.end(),
                                [](const Histogram& h) { return h.severity == kKept; });
  Json values = Json::array();
  for (const Histogram& h : histograms) {
    if (std::find(names.begin(), names.end(), h.panel()) != names.end()) add_values(h, values);
  }
  Json spec = chart(title + ", one line for each severity", Shape::full);
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
        {"color", severity_colour("severity", kept)},
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
constexpr Kind kKinds[] = {{"preactivation", "Pre-activations"},
                           {"activation", "Activations"},
                           {"context", "Contexts, in which values are ranked,"}};

}  // namespace

// The paper's third figure, of trained networks.
std::vector<Block> distributions(const results::Rows& rows) {
  const results::Rows all = results::of_kind(rows, "histogram");
  std::vector<Setting> settings;
  for (const results::Row& row : all) {
    const Setting setting = results::setting_of(row);
    if (std::find(settings.begin(), settings.end(), setting) == settings.end()) {
      settings.push_back(setting);
    }
  }
  std::vector<Block> blocks;
  int number = 0;
  for (const Setting& setting : settings) {
    const std::string label = setting.dataset + ", " + setting.model + ", " +
                              activation_name(setting.activation) + ", " + mode_name(setting);
    blocks.push_back(Heading{label});
    ++number;
    for (const bool neurons : {false, true}) {
      for (const Kind& kind : kKinds) {
        std::vector<Histogram> chosen;
        std::string distortion;
        for (const results::Row& row : all) {
          const Histogram h = read(row);
          if (results::setting_of(row) != setting || h.what != kind.what ||
              (h.channel != kAllChannels) != neurons) {
            continue;
          }
          chosen.push_back(h);
          if (h.severity > 0) distortion = row.value("distortion", "");
        }
        if (chosen.empty()) continue;
        const std::string caption = std::string(kind.title) +
                                    (neurons ? " of chosen neurons" : " of whole layers") +
                                    (distortion.empty() ? "." : ", under " + distortion + ".");
        blocks.push_back(panels("distribution_" + std::to_string(number) + "_" + kind.what +
                                    (neurons ? "_neurons" : ""),
                                kind.title, caption, chosen));
      }
    }
  }
  return blocks;
}

}  // namespace qact::report
