#include "qact/report/page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "qact/report/assets.h"
#include "qact/report/html.h"
#include "qact/results/toy.h"
#include "tests/base/scratch_folder.h"

namespace qact::report {
namespace {

results::Rows toy_rows() {
  results::Rows rows = {
      {{"kind", "run"}, {"command", "qact toy --output '<a> & b'"}, {"seeds", 2}}};
  for (const char* experiment : {"circle", "monotone"}) {
    for (const char* network : {"relu", "qact"}) {
      for (int64_t seed = 0; seed < 2; ++seed) {
        rows.push_back(results::to_row({.experiment = experiment,
                                        .network = network,
                                        .label = network,
                                        .seed = seed,
                                        .batch_size = 8,
                                        .bayes = 0.99,
                                        .correct = {8, 7, 4, 0}}));
      }
    }
  }
  rows.push_back({{"kind", "toy_points"},
                  {"experiment", "circle"},
                  {"context", 0},
                  {"angle", 0.3},
                  {"turn", 0.5},
                  {"points", {{0.9, 0.1, 0}, {0.7, 0.6, 1}}}});
  rows.push_back({{"kind", "toy_map"},
                  {"experiment", "monotone"},
                  {"context", 0},
                  {"values", {0.0, 0.3, 2.0}}});
  return rows;
}

// The page without the scripts and the style that every page carries.
std::string own_part(std::string page) {
  for (const std::string_view asset : {vega_bundle(), page_script(), page_style()}) {
    const size_t at = page.find(asset);
    EXPECT_NE(at, std::string::npos);
    page.erase(at, asset.size());
  }
  return page;
}

TEST(Page, RefersToNothingOutside) {
  const std::string own = own_part(make_page("title", toy_rows()));
  for (const char* outside : {"http:", "https:", "//", "src=", "href=", "url(", "@import"}) {
    EXPECT_EQ(own.find(outside), std::string::npos) << outside;
    if (std::string_view(outside) != "//") {
      EXPECT_EQ(page_style().find(outside), std::string::npos) << outside;
      EXPECT_EQ(page_script().find(outside), std::string::npos) << outside;
    }
  }
  EXPECT_GT(vega_bundle().size(), 100'000u);
}

// Every element that is opened is closed, in order, but for the few that never are.
TEST(Page, IsWellFormed) {
  std::string own = own_part(make_page("a <title> & more", toy_rows()));
  EXPECT_EQ(own.rfind("<!DOCTYPE html>", 0), 0u);
  const std::regex tag("<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>");
  std::vector<std::string> open;
  for (auto it = std::sregex_iterator(own.begin(), own.end(), tag); it != std::sregex_iterator();
       ++it) {
    const std::string name = (*it)[2];
    if (name == "meta") continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
  EXPECT_NE(own.find("<title>a &lt;title&gt; &amp; more</title>"), std::string::npos);
  EXPECT_NE(own.find("'&lt;a&gt; &amp; b'"), std::string::npos);
}

TEST(Page, HoldsSpecificationsThatAreJson) {
  const std::string own = own_part(make_page("title", toy_rows()));
  const std::regex script("<script type=\"application/json\" id=\"([a-z_]+)\">([^<]*)</script>");
  std::vector<std::string> names;
  for (auto it = std::sregex_iterator(own.begin(), own.end(), script); it != std::sregex_iterator();
       ++it) {
    const auto spec = nlohmann::json::parse((*it)[2].str());
    EXPECT_TRUE(spec.contains("config")) << (*it)[1];
    EXPECT_TRUE(spec.contains("description")) << (*it)[1];
    EXPECT_NE(own.find("data-chart=\"" + (*it)[1].str() + "\""), std::string::npos);
    names.push_back((*it)[1]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"circle_problem", "circle_accuracy",
                                             "monotone_problem", "monotone_accuracy"}));
}

TEST(Page, LeavesOutWhatRowsDoNotHold) {
  const std::string own = own_part(make_page("nothing", {}));
  EXPECT_EQ(own.find("<section"), std::string::npos);
  EXPECT_EQ(own_part(make_page("title", {{{"kind", "unknown"}}})).find("<section"),
            std::string::npos);
}

TEST(Page, EscapesWhatWouldEndAScript) {
  EXPECT_EQ(script_json("</script><!--"), "\"\\u003c/script>\\u003c!--\"");
  EXPECT_EQ(nlohmann::json::parse(script_json("</script>")), "</script>");
}

TEST(Charts, AreSavedOneFileEach) {
  const ScratchFolder scratch;
  write_charts(scratch.path / "figures", toy_rows());
  for (const Chart& chart : make_charts(toy_rows())) {
    std::ifstream file(scratch.path / "figures" / (chart.name + ".vl.json"));
    EXPECT_EQ(nlohmann::ordered_json::parse(file), chart.spec) << chart.name;
  }
}

}  // namespace
}  // namespace qact::report
