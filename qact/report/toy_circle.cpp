#include <cmath>

#include "qact/report/chart.h"
#include "qact/report/toy.h"

namespace qact::report {
namespace {

// Points of a few contexts, and for each the line that parts its classes best: through the
// origin, halfway between the two means.
Chart problem(const results::Rows& rows) {
  Json points = Json::array(), lines = Json::array();
  for (const results::Row& row : rows) {
    const int number = row.at("context").get<int>() + 1;
    for (const results::Row& point : row.at("points")) {
      points.push_back({{"x", point.at(0)},
                        {"y", point.at(1)},
                        {"class", "class " + point.at(2).dump()},
                        {"context", number}});
    }
    const double middle = row.at("angle").get<double>() + row.at("turn").get<double>() / 2;
    lines.push_back({{"x", 0},
                     {"y", 0},
                     {"x2", std::round(1450 * std::cos(middle)) / 1000},
                     {"y2", std::round(1450 * std::sin(middle)) / 1000},
                     {"context", number}});
  }
  const auto axis = [](const char* field) -> Json {
    return {{"field", field},
            {"type", "quantitative"},
            {"title", nullptr},
            {"scale", {{"domain", {-1.5, 1.5}}, {"nice", false}}},
            {"axis", {{"values", {-1, 0, 1}}}}};
  };
  Json spec = chart("Points of six contexts on a circle, with the lines that part their classes",
                    Shape::square);
  spec["width"] = spec["height"] = 320;
  spec["layer"] = {
      {{"data", {{"values", lines}}},
       {"mark", {{"type", "rule"}, {"strokeDash", {4, 4}}, {"opacity", 0.55}}},
       {"encoding",
        {{"x", axis("x")},
         {"y", axis("y")},
         {"x2", {{"field", "x2"}}},
         {"y2", {{"field", "y2"}}}}}},
      {{"data", {{"values", points}}},
       {"mark", {{"type", "point"}, {"filled", true}, {"size", 16}, {"opacity", 0.75}}},
       {"encoding",
        {{"x", axis("x")},
         {"y", axis("y")},
         {"color",
          {{"field", "class"},
           {"type", "nominal"},
           {"scale", {{"range", kClassColours}}},
           {"legend", {{"title", nullptr}, {"orient", "top"}}}}},
         {"shape", {{"field", "class"}, {"type", "nominal"}}},
         {"tooltip", {{{"field", "context"}}, {{"field", "class"}}}}}}}};
  return {"circle_problem",
          "Six contexts, each with the line that parts its two classes best. Where contexts "
          "overlap, the same point belongs to either class.",
          std::move(spec)};
}

}  // namespace

std::vector<Block> toy_circle(const results::Rows& rows) {
  const auto scores = results::toy_scores(rows, "circle");
  if (scores.empty()) return {};
  std::vector<Block> blocks = {
      Text{"Two classes of points lie around two centres on a circle, 30 degrees apart. Where on "
           "the circle is drawn anew for every context, so that a point of one class here is of "
           "the other class there: no fixed function of a point can do better than guess. Seen "
           "together, the points of one context give the answer away."},
      Text{"ReLU is such a fixed function. BatchNorm + ReLU is the control: it sees the batch "
           "through its mean and variance. Where it does as well as QAct, the gain is the "
           "context's and not the activation's."},
      toy_table(results::summarise_toy(scores))};
  const results::Rows points = results::of_kind(rows, "toy_points");
  if (!points.empty()) blocks.push_back(problem(points));
  blocks.push_back(toy_histograms("circle_accuracy", scores));
  return blocks;
}

}  // namespace qact::report
