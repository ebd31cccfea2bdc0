#include "qact/report/curves.h"
#include "qact/report/sections.h"
#include "qact/results/disambiguate.h"

namespace qact::report {
namespace {

// Points as parallel lists, which take a third of the bytes.
Json data_of(const results::Row& row) {
  Json classes = Json::array();
  const Json names = row.value("class_names", Json::array());
  for (const size_t k : results::field<std::vector<size_t>>(row, "label")) {
    classes.push_back(k < names.size() ? names[k].get<std::string>() : std::to_string(k));
  }
  return {{"values",
           {{{"x", results::field<results::Rows>(row, "x")},
             {"y", results::field<results::Rows>(row, "y")},
             {"class", classes},
             {"severity", results::field<results::Rows>(row, "point_severity")}}}}};
}

Chart embedding_chart(const std::string& name, const results::Row& row, const std::string& label) {
  const auto axis = [](const char* field) -> Json {
    return {{"field", field},
            {"type", "quantitative"},
            {"axis", nullptr},
            {"scale", {{"zero", false}}}};
  };
  const Json data = data_of(row);
  const size_t points = row.at("x").size();
  Json spec =
      chart("The embeddings of " + label + " in a plane, one panel for each severity", Shape::full);
  spec["data"] = data;
  spec["transform"] = {{{"flatten", {"x", "y", "class", "severity"}}}};
  spec["facet"] = {{"field", "severity"},
                   {"type", "ordinal"},
                   {"title", nullptr},
                   {"header", {{"labelExpr", "'severity ' + datum.value"}}}};
  set_columns(spec, 3, /*square=*/true);
  spec["spacing"] = 12;
  spec["spec"] = {{"width", 240},
                  {"height", 240},
                  {"params", legend_selection("class")},
                  {"mark", {{"type", "point"}, {"filled", true}, {"size", points > 2000 ? 7 : 14}}},
                  {"view", {{"stroke", "currentColor"}, {"strokeOpacity", 0.15}}},
                  {"encoding",
                   {{"x", axis("x")},
                    {"y", axis("y")},
                    {"color",
                     {{"field", "class"},
                      {"type", "nominal"},
                      {"scale", {{"scheme", "tableau10"}}},
                      {"legend", {{"orient", "bottom"}, {"title", "class"}, {"columns", 5}}}}},
                    {"opacity", selection_opacity(0.8, 0.05)},
                    {"tooltip", {{{"field", "class"}}, {{"field", "severity"}}}}}}};
  return {name,
          label + ", " + results::field<std::string>(row, "corruption") + ": " +
              std::to_string(points) + " images, all severities embedded together.",
          std::move(spec)};
}

}  // namespace

// The paper's second figure.
std::vector<Block> embeddings(const results::Rows& rows) {
  const std::vector<Group> all = groups(rows);
  std::vector<Block> blocks;
  int number = 0;
  for (const results::Evaluation& e : results::evaluations(rows)) {
    if (e.kind != "tsne") continue;
    const std::string title = e.setting.dataset + ", " + e.setting.model + ", ";
    const std::string label = (all.size() > 1 ? title : "") + label_of(e, all);
    blocks.push_back(Heading{label});
    blocks.push_back(embedding_chart("embedding_" + std::to_string(++number), rows[e.row], label));
  }
  return blocks;
}

}  // namespace qact::report
