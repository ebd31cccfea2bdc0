#include "qact/report/toy.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "qact/report/chart.h"
#include "qact/report/curves.h"

namespace qact::report {
namespace {

using results::ToyScore;
using results::ToySummary;

constexpr int kBins = 50;  // of accuracy, over [0, 1]

// Contexts in each bin, all seeds of one network together; a seed given twice counts once.
std::vector<int64_t> histogram(const std::vector<ToyScore>& scores, const ToySummary& summary) {
  std::vector<int64_t> counts(kBins, 0);
  std::set<int64_t> seeds;
  for (const ToyScore& score : scores) {
    if (!summary.matches(score) || !seeds.insert(score.seed).second) continue;
    for (const int64_t correct : score.correct) {
      // In integers, so that an accuracy on an edge always falls on the same side.
      counts[std::min<int64_t>(correct * kBins / score.batch_size, kBins - 1)] += 1;
    }
  }
  return counts;
}

std::string heading(const ToySummary& summary) {
  return summary.label + ": mean " + fixed(summary.mean, 3) + ", worst " + fixed(summary.worst, 3);
}

Json histogram_values(const std::vector<ToyScore>& scores,
                      const std::vector<ToySummary>& summaries) {
  Json values = Json::array();
  for (const ToySummary& summary : summaries) {
    const std::vector<int64_t> counts = histogram(scores, summary);
    for (int bin = 0; bin < kBins; ++bin) {
      if (counts[bin] == 0) continue;
      values.push_back(
          {{"network", heading(summary)},
           {"from", static_cast<double>(bin) / kBins},
           {"to", static_cast<double>(bin + 1) / kBins},
           {"share", static_cast<double>(counts[bin]) / static_cast<double>(summary.contexts)},
           {"contexts", counts[bin]},
           {"mean", summary.mean},
           {"bayes", summary.bayes}});
    }
  }
  return values;
}

// A vertical line through each row, at a field that is the same in all its values.
Json rule(const char* field, const char* title, Json mark) {
  mark["type"] = "rule";
  return {{"mark", mark},
          {"encoding",
           {{"x", {{"field", field}, {"aggregate", "mean"}, {"type", "quantitative"}}},
            {"tooltip",
             {{"field", field}, {"aggregate", "mean"}, {"format", ".4f"}, {"title", title}}}}}};
}

}  // namespace

Table toy_table(const std::vector<ToySummary>& summaries) {
  Table table{
      .columns = {{"network"}, {"mean", true}, {"± seeds", true}, {"worst", true}, {"Bayes", true}},
      .rows = {}};
  for (const ToySummary& s : summaries) {
    table.rows.push_back({s.label, fixed(s.mean, 4), s.seeds > 1 ? fixed(s.deviation, 4) : "-",
                          fixed(s.worst, 4), fixed(s.bayes, 4)});
  }
  // Where all lines are of one experiment, a column that says so tells nothing.
  const auto other = [&](const ToySummary& s) { return s.experiment != summaries[0].experiment; };
  if (std::any_of(summaries.begin(), summaries.end(), other)) {
    table.columns.insert(table.columns.begin(), {"experiment"});
    for (size_t i = 0; i < summaries.size(); ++i) {
      table.rows[i].insert(table.rows[i].begin(), summaries[i].experiment);
    }
  }
  return table;
}

Chart toy_histograms(const std::string& name, const std::vector<ToyScore>& scores) {
  const std::vector<ToySummary> summaries = results::summarise_toy(scores);
  std::vector<std::string> names, headings;
  double lowest = 0.5;
  for (const ToySummary& summary : summaries) {
    names.push_back(summary.network);
    headings.push_back(heading(summary));
    lowest = std::min(lowest, summary.worst);
  }
  const Json bar = {
      {"mark", {{"type", "bar"}, {"binSpacing", 1}}},
      {"encoding",
       {{"x",
         {{"field", "from"},
          {"bin", "binned"},
          {"type", "quantitative"},
          {"title", "accuracy in a context"},
          {"scale", {{"domain", {std::floor(lowest * 10) / 10, 1.0}}}},
          {"axis",
           {{"format", ".1f"},
            {"values", {0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}},
            {"grid", true}}}}},
        {"x2", {{"field", "to"}}},
        {"y",
         {{"field", "share"},
          {"type", "quantitative"},
          {"title", nullptr},
          {"axis", {{"format", "%"}, {"tickCount", 2}, {"grid", false}, {"domain", false}}}}},
        {"color", network_colour("network", names, headings)},
        {"tooltip",
         {{{"field", "from"}, {"format", ".2f"}, {"title", "accuracy from"}},
          {{"field", "to"}, {"format", ".2f"}, {"title", "to"}},
          {{"field", "contexts"}, {"title", "contexts"}},
          {{"field", "share"}, {"format", ".1%"}, {"title", "share"}}}}}}};
  Json spec = chart("Histograms of the accuracy in each context, one for each network");
  spec["data"] = {{"values", histogram_values(scores, summaries)}};
  spec["facet"] = {{"row",
                    {{"field", "network"},
                     {"type", "nominal"},
                     {"title", nullptr},
                     {"sort", headings},
                     {"header",
                      {{"labelOrient", "top"},
                       {"labelAnchor", "start"},
                       {"labelAngle", 0},
                       {"labelPadding", 4}}}}}};
  spec["spacing"] = 18;
  spec["resolve"] = {{"scale", {{"y", "independent"}}}};
  spec["spec"] = {{"width", 480},
                  {"height", 64},
                  {"layer",
                   {bar, rule("mean", "mean", {{"strokeWidth", 1.5}}),
                    rule("bayes", "Bayes", {{"strokeDash", {3, 3}}, {"opacity", 0.7}})}}};
  return {
      name,
      "Accuracy in each context: share of contexts per bin of 0.02, all seeds together. Solid "
      "line: the mean; dashed: the best that any classifier can do. Each row has its own scale.",
      std::move(spec)};
}

}  // namespace qact::report
