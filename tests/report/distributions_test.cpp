// Histograms of layers and neurons.
#include <gtest/gtest.h>

#include <functional>

#include "qact/report/chart.h"
#include "qact/report/page.h"
#include "tests/results/example_rows.h"

namespace qact::report {
namespace {

results::Row histogram_row(const std::string& what, const std::string& mode,
                           const results::Row& severity, const std::vector<double>& counts) {
  results::Evaluation e = results::example_evaluation("fog");
  e.kind = "histogram";
  e.setting.mode = mode;
  e.setting.classifier = "none";
  e.layer = "activation1";
  e.what = what;
  e.channel = 3;
  results::Row row = results::to_row(e);
  row.update({{"severity", severity},
              {"layer_index", 0},
              {"low", -4},
              {"high", 4},
              {"counts", counts},
              {"below", 0.5},
              {"above", 0}});
  return row;
}

// Fifty bins, nothing but in the middle ones.
std::vector<double> narrow(double first) {
  std::vector<double> counts(50, 0.0);
  counts[24] = first;
  counts[25] = 700.5;
  counts[26] = 200.25;
  return counts;
}

TEST(Distributions, ShowTheRangeThatHoldsTheValues) {
  const auto charts = make_charts({histogram_row("context", "tracked", nullptr, narrow(98.75))});
  ASSERT_EQ(charts.size(), 1u);
  const Json& values = charts[0].spec["data"]["values"];
  ASSERT_EQ(values.size(), 5u);  // with a neighbour to either side
  EXPECT_NEAR(values[0]["value"].get<double>(), -4 + 23.5 * 0.16, 1e-12);
  const std::vector<double> shares = {0, 0.09875, 0.7005, 0.20025, 0};
  for (size_t b = 0; b < shares.size(); ++b) {
    EXPECT_NEAR(values[b]["share"].get<double>(), shares[b], 1e-12) << b;
  }
}

TEST(Distributions, OfAllSeveritiesHaveTheSameBars) {
  results::Rows rows;
  for (int severity = 0; severity < 2; ++severity) {
    std::vector<double> counts(50, 1.5);
    counts[0] = counts[49] = 0;
    counts[10] += severity;
    rows.push_back(histogram_row("preactivation", "batch", severity, counts));
  }
  const Json values = make_charts(rows)[0].spec["data"]["values"];
  ASSERT_EQ(values.size(), 50u);
  double share = 0;
  for (size_t b = 0; b < 25; ++b) {
    EXPECT_EQ(values[b]["value"], values[25 + b]["value"]);
    share += values[b]["share"].get<double>();
  }
  EXPECT_NEAR(share, 72 / 72.5, 1e-12);  // half a value is below all bins
}

// Clean images belong to both corruptions.
TEST(Distributions, NetworksSeedsAndCorruptionsHaveTheirOwnCharts) {
  const auto count = [](const std::function<void(results::Row&)>& change) {
    results::Rows rows = {histogram_row("activation", "batch", 0, narrow(9)),
                          histogram_row("activation", "batch", 5, narrow(9)),
                          histogram_row("activation", "batch", 5, narrow(8))};
    rows[0]["corruption"] = "none";
    change(rows[2]);
    return make_charts(rows).size();
  };
  EXPECT_EQ(count([](results::Row& row) { row["severity"] = 4; }), 1u);
  EXPECT_EQ(count([](results::Row& row) { row["corruption"] = "snow"; }), 2u);
  EXPECT_EQ(count([](results::Row& row) { row["training"]["lr"] = 0.01; }), 2u);
  EXPECT_EQ(count([](results::Row& row) { row["seed"] = 1; }), 2u);
  EXPECT_EQ(count([](results::Row& row) { row["model_hash"] = "other"; }), 2u);
}

TEST(Distributions, LegendsListWhatIsDrawn) {
  const auto colour = [](const results::Rows& rows) {
    return make_charts(rows)[0].spec["spec"]["encoding"]["color"];
  };
  const Json running = colour({histogram_row("context", "batch", nullptr, narrow(9))});
  EXPECT_EQ(running["scale"]["domain"], Json({"running"}));
  EXPECT_TRUE(running["legend"].is_null());
  const Json two = colour({histogram_row("activation", "batch", 0, narrow(9)),
                           histogram_row("activation", "batch", 5, narrow(9))});
  EXPECT_EQ(two["scale"]["domain"], Json({0, 5}));
  EXPECT_EQ(two["legend"]["columns"], 2);
}

TEST(Distributions, SayWhatAModeDoesWithRunningContexts) {
  const auto caption = [](const char* mode) {
    return make_charts({histogram_row("context", mode, nullptr, narrow(9))})[0].caption;
  };
  EXPECT_EQ(caption("tracked"),
            "Running contexts of chosen neurons, from training, in which values are ranked.");
  EXPECT_EQ(caption("batch"),
            "Running contexts of chosen neurons, from training; here values are ranked among the "
            "test images instead.");
}

}  // namespace
}  // namespace qact::report
