#include "qact/report/chart.h"
#include "qact/report/toy.h"

namespace qact::report {
namespace {

Chart problem(const results::Rows& rows) {
  Json values = Json::array();
  for (const results::Row& row : rows) {
    const Json& map = row.at("values");
    for (size_t k = 0; k < map.size(); ++k) {
      values.push_back({{"rank", static_cast<double>(k) / static_cast<double>(map.size() - 1)},
                        {"value", map[k]},
                        {"context", row.at("context").get<int>() + 1}});
    }
  }
  Json spec = chart("The maps that one feature passes through in six contexts", Shape::square);
  spec["width"] = spec["height"] = 320;
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "line"}, {"strokeWidth", 1.8}};
  spec["encoding"] = {{"x",
                       {{"field", "rank"},
                        {"type", "quantitative"},
                        {"title", "rank of the feature"},
                        {"axis", {{"values", {0, 0.5, 1}}}}}},
                      {"y",
                       {{"field", "value"},
                        {"type", "quantitative"},
                        {"title", "what the network is shown"},
                        {"axis", {{"tickCount", 4}}}}},
                      {"color",
                       {{"field", "context"},
                        {"type", "nominal"},
                        {"scale", {{"scheme", "tableau10"}}},
                        {"legend", nullptr}}},
                      {"tooltip",
                       {{{"field", "context"}},
                        {{"field", "rank"}, {"format", ".2f"}},
                        {{"field", "value"}, {"format", ".2f"}}}}};
  return {"monotone_problem",
          "One feature in six contexts: each draws a map of its own. All are increasing, so that "
          "ranks stay; nothing else does.",
          std::move(spec)};
}

}  // namespace

std::vector<Block> toy_monotone(const results::Rows& rows) {
  const auto scores = results::toy_scores(rows, "monotone");
  if (scores.empty()) return {};
  std::vector<Block> blocks = {
      Text{"Eight features; the label asks whether the first four ranks of a sample, among those "
           "of its context, outweigh the other four. Every context passes each feature through a "
           "random increasing map of its own, which moves means, variances and shapes, but no "
           "rank."},
      Text{"The activation under test comes first. BatchNorm undoes a shift and a scale; a rank "
           "undoes any increasing map. QAct's inner norm moves the zero at which a neuron is "
           "grounded to the mean, and so lets a little of the map through; without it, nothing is "
           "left of a map that keeps signs, as these do. BatchNorm is tried with a ReLU straight "
           "after it and without one."},
      toy_table(results::summarise_toy(scores))};
  const results::Rows maps = results::of_kind(rows, "toy_map");
  if (!maps.empty()) blocks.push_back(problem(maps));
  blocks.push_back(toy_histograms("monotone_accuracy", scores));
  return blocks;
}

}  // namespace qact::report
