// The evaluation's sections, from rows whose means are known.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "qact/report/base64.h"
#include "qact/report/csv.h"
#include "qact/report/curves.h"
#include "qact/report/means.h"
#include "qact/report/page.h"
#include "qact/report/paper.h"
#include "qact/report/summary.h"
#include "tests/results/some_rows.h"

namespace qact::report {
namespace {

results::Row score_row(const std::string& activation, const std::string& mode,
                       const std::string& corruption, int severity, double accuracy,
                       uint64_t seed = 0) {
  results::Evaluation e = results::some_evaluation(corruption, severity);
  e.setting.activation = activation;
  e.setting.mode = mode;
  e.seed = seed;
  e.model_hash = activation + std::to_string(seed);
  return results::score_row(e, accuracy);
}

// Accuracy 0.9 clean; 0.8 and 0.6 under two corruptions for QAct; ReLU was shown a third.
results::Rows some_rows() {
  return {
      score_row("relu", "tracked", "none", 0, 0.95), score_row("relu", "tracked", "fog", 1, 0.5),
      score_row("relu", "tracked", "snow", 1, 0.4),  score_row("relu", "tracked", "frost", 1, 0.1),
      score_row("qact", "batch", "none", 0, 0.9),    score_row("qact", "batch", "fog", 1, 0.8),
      score_row("qact", "batch", "snow", 1, 0.6),    score_row("qact", "batch", "tone", 1, 0.85)};
}

TEST(Groups, CompareOnCorruptionsThatAllWereShown) {
  const auto all = groups(some_rows());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].corruptions, (std::vector<std::string>{"fog", "snow"}));
  ASSERT_EQ(all[0].curves.size(), 2u);
  EXPECT_EQ(all[0].curves[0].label, "QAct, batch statistics");
  EXPECT_EQ(all[0].curves[1].label, "ReLU, kept statistics");
  EXPECT_EQ(all[0].slug("drop"), "cifar10_resnet18_drop");
  EXPECT_NEAR(all[0].curves[0].mean("accuracy", 1, all[0].corruptions), 0.7, 1e-12);
  EXPECT_NEAR(all[0].curves[0].mean("drop", 1, all[0].corruptions), 0.2, 1e-12);
  EXPECT_TRUE(std::isnan(all[0].curves[0].mean("map100", 1, all[0].corruptions)));
  EXPECT_TRUE(all[0].notes.empty());
}

std::vector<std::string> labels_of(const Group& group) {
  std::vector<std::string> labels;
  for (const Curve& curve : group.curves) labels.push_back(curve.label);
  return labels;
}

// As some_rows, of QAct trained otherwise.
results::Rows with_lr(const char* lr, uint64_t seed = 0) {
  results::Rows rows = {score_row("qact", "batch", "none", 0, 0.7, seed),
                        score_row("qact", "batch", "fog", 1, 0.4, seed),
                        score_row("qact", "batch", "snow", 1, 0.2, seed)};
  for (results::Row& row : rows) {
    row["training"]["lr"] = nlohmann::ordered_json::parse(lr);
    row["model_hash"] = std::string("lr") + lr + std::to_string(seed);
  }
  return rows;
}

results::Rows joined(results::Rows a, const results::Rows& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Groups, NetworksThatWereTrainedOtherwiseAreToldApartInAnyOrder) {
  const results::Rows a = some_rows(), b = with_lr("0.01");
  const Group group = groups(joined(a, b))[0];
  EXPECT_EQ(labels_of(group), (std::vector<std::string>{"QAct, lr 0.01, batch statistics",
                                                        "QAct, lr 0.1, batch statistics",
                                                        "ReLU, lr 0.1, kept statistics"}));
  EXPECT_NEAR(group.curves[0].mean("accuracy", 0, group.corruptions), 0.7, 1e-12);
  EXPECT_NEAR(group.curves[1].mean("accuracy", 0, group.corruptions), 0.9, 1e-12);
  EXPECT_EQ(make_page("title", joined(a, b)), make_page("title", joined(b, a)));
  // As seeds of one another they would be averaged.
  const Group seeds = groups(joined(a, with_lr("0.01", 1)))[0];
  EXPECT_EQ(seeds.curves.size(), 3u);
  EXPECT_EQ(groups(joined(a, with_lr("0.1", 1)))[0].curves.size(), 2u);
}

using MaybeText = const std::optional<std::string>&;

// Every field of a row that may differ gives another name; no name says what does not differ.
TEST(Groups, LabelsNameWhateverDiffers) {
  const results::Setting any;
  results::visit_setting(any, [&](const char* name, const auto& field, results::Role) {
    results::Row row = score_row("qact", "batch", "fog", 1, 0.8), other;
    const bool text = row[name].is_string() || std::is_same_v<decltype(field), MaybeText>;
    if (row[name].is_null()) row[name] = text ? results::Row("first") : results::Row(3);
    other = row;
    other["accuracy"] = 0.5;
    other["model_hash"] = "another";
    if (name == std::string("training")) {
      other[name]["momentum"] = 0.5;
    } else {
      other[name] = text ? results::Row("other") : results::Row(7);
    }
    if (name == std::string("official")) other["data_hash"] = "other";
    if (name == std::string("limit")) other["activation"] = "relu";  // else one gives way
    const auto found = groups({row, other});
    if (found.size() > 1) return;  // another dataset or model
    const std::vector<std::string> labels = labels_of(found[0]);
    ASSERT_EQ(labels.size(), 2u) << name;
    EXPECT_NE(labels[0], labels[1]) << name;
    EXPECT_EQ(labels[0].find("none"), std::string::npos) << labels[0];
  });
}

TEST(Groups, APartialEvaluationChangesNothingButANote) {
  results::Rows rows = some_rows();
  const auto full = make_charts(rows);
  for (const auto& [corruption, severity] : {std::pair("none", 0), {"fog", 1}}) {
    results::Row row = score_row("qact", "batch", corruption, severity, 1.0);
    row["limit"] = 20;
    row["n"] = 20;
    rows.push_back(row);
  }
  const Group group = groups(rows)[0];
  EXPECT_EQ(group.notes,
            (std::vector<std::string>{"Left out: an evaluation of QAct, batch statistics on the "
                                      "first 20 images; shown is the one on all images."}));
  const auto charts = make_charts(rows);
  ASSERT_EQ(charts.size(), full.size());
  for (size_t i = 0; i < charts.size(); ++i) EXPECT_EQ(charts[i].spec, full[i].spec);
  EXPECT_NE(make_page("title", rows).find(group.notes[0]), std::string::npos);
}

// A row or two of another mode: an evaluation under way.
TEST(Groups, AnEvaluationUnderWayTakesNoChartAway) {
  results::Rows rows = some_rows();
  const auto full = make_charts(rows);
  rows.push_back(score_row("qact", "tracked", "none", 0, 0.9));
  const Group group = groups(rows)[0];
  EXPECT_EQ(group.corruptions, (std::vector<std::string>{"fog", "snow"}));
  ASSERT_EQ(group.notes.size(), 1u);
  EXPECT_EQ(group.notes[0],
            "Not in the means over corruptions: QAct, kept statistics was shown 0 of the 2 "
            "corruptions in full.");
  const auto charts = make_charts(rows);
  ASSERT_EQ(charts.size(), full.size());
}

TEST(Groups, EmbeddingsHaveTheNamesOfTheirCurves) {
  results::Rows rows = joined(some_rows(), joined(with_lr("0.01"), with_lr("0.01", 1)));
  const auto add = [&](results::Row row) {
    row.update({{"kind", "tsne"}, {"classifier", "none"}, {"severity", nullptr}, {"limit", 10}});
    row.update({{"x", {1}}, {"y", {1}}, {"label", {0}}, {"point_severity", {0}}});
    rows.push_back(row);
  };
  add(rows[5]), add(with_lr("0.01", 1)[1]);
  const std::string page = make_page("title", rows);
  EXPECT_NE(page.find("<h3>QAct, lr 0.1, batch statistics</h3>"), std::string::npos);
  EXPECT_NE(page.find("<h3>QAct, lr 0.01, batch statistics, seed 1</h3>"), std::string::npos);
}

TEST(Means, AreThoseOfThePage) {
  const Json all = means(joined(some_rows(), {score_row("qact", "batch", "none", 0, 0.8, 1),
                                              score_row("qact", "batch", "fog", 1, 0.7, 1),
                                              score_row("qact", "batch", "snow", 1, 0.5, 1)}));
  ASSERT_EQ(all.size(), 3u);  // QAct, its tone, ReLU
  EXPECT_EQ(all[0]["label"], "QAct, batch statistics");
  EXPECT_EQ(all[0]["seeds"], Json({0, 1}));
  EXPECT_EQ(all[0]["setting"]["training"]["lr"], 0.1);
  EXPECT_EQ(all[0]["corruptions"], Json({"fog", "snow"}));
  const Json& accuracy = all[0]["metrics"]["accuracy"];
  EXPECT_NEAR(accuracy["mean"]["1"].get<double>(), 0.65, 1e-12);
  EXPECT_NEAR(accuracy["deviation"]["1"].get<double>(), 0.1 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(accuracy["fall"]["mean"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(accuracy["fall"]["seeds"], 2);
  EXPECT_EQ(all[1]["kind"], "tone");
  EXPECT_EQ(all[1]["metrics"]["accuracy"]["mean"]["1"], 0.85);
  EXPECT_FALSE(all[0]["metrics"].contains("map100"));
}

TEST(Groups, LabelsNameWhatIsNotUsualAndStayApart) {
  results::Rows rows = some_rows();
  for (const char* classifier : {"quantile", "logistic"}) {
    results::Row row = score_row("qact", "batch", "fog", 1, 0.8);
    row["classifier"] = classifier;
    rows.push_back(row);
  }
  results::Row early = score_row("qact", "prior", "fog", 1, 0.8);
  early["prior"] = 16;
  early["placement"] = "reference";
  rows.push_back(early);
  const Group group = groups(rows)[0];
  std::vector<std::string> labels;
  for (const Curve& curve : group.curves) labels.push_back(curve.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"QAct early, batch statistics",
                                      "QAct early, logistic regression, batch statistics",
                                      "QAct early, quantile classifier, batch statistics",
                                      "QAct reference, prior of 16", "ReLU, kept statistics"}));
}

// 5 networks, 2 modes, 3 classifiers: each network and classifier has a colour of its own.
TEST(Groups, ColoursTellNetworksApart) {
  results::Rows rows;
  for (const auto& [activation, placement] : {std::pair("qact", "early"),
                                              {"qact", "reference"},
                                              {"relu", "early"},
                                              {"bn-relu", "early"},
                                              {"bn-relu", "reference"}}) {
    for (const char* mode : {"batch", "tracked"}) {
      for (const char* classifier : {"head", "quantile", "logistic"}) {
        rows.push_back(score_row(activation, mode, "fog", 1, 0.8));
        rows.back()["placement"] = placement;
        rows.back()["classifier"] = classifier;
      }
    }
  }
  const Group group = groups(rows)[0];
  std::set<std::string> labels, usual;
  for (const Curve& curve : group.curves) {
    labels.insert(curve.label);
    if (group.is_usual(curve.setting)) usual.insert(curve.colour);
    for (const Curve& other : group.curves) {
      const bool same_network = curve.setting.placement == other.setting.placement &&
                                curve.setting.activation == other.setting.activation &&
                                curve.setting.classifier == other.setting.classifier;
      if (same_network) {
        EXPECT_EQ(curve.colour, other.colour) << curve.label;
      }
    }
  }
  EXPECT_EQ(labels.size(), 30u);
  EXPECT_TRUE(labels.contains("BatchNorm + ReLU reference, batch statistics"));
  EXPECT_EQ(usual.size(), 5u);
}

TEST(Course, HasABandBetweenCorruptionsOrBetweenSeeds) {
  results::Rows rows = some_rows();
  const Group one = groups(rows)[0];
  const Course between = course(one.curves[0], "accuracy", one.corruptions);
  ASSERT_EQ(between.points.size(), 2u);
  EXPECT_FALSE(between.over_seeds);
  EXPECT_NEAR(between.points[1].mean, 0.7, 1e-12);
  EXPECT_NEAR(between.points[1].deviation, std::sqrt(0.02), 1e-12);

  rows.push_back(score_row("qact", "batch", "none", 0, 0.9, 1));
  rows.push_back(score_row("qact", "batch", "fog", 1, 0.9, 1));
  rows.push_back(score_row("qact", "batch", "snow", 1, 0.7, 1));
  const Group two = groups(rows)[0];
  const Course seeds = course(two.curves[0], "accuracy", two.corruptions);
  EXPECT_TRUE(seeds.over_seeds);
  // ReLU has one seed still.
  EXPECT_NE(make_charts(rows)[0].caption.find("between seeds; where there is one seed, between "),
            std::string::npos);
  EXPECT_NEAR(seeds.points[1].mean, 0.75, 1e-12);
  EXPECT_NEAR(seeds.points[1].deviation, std::sqrt(0.005), 1e-12);
}

TEST(Summary, SaysWhatWinsWhateverTheNumbersAre) {
  const auto lines = verdict(groups(some_rows())[0]);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "QAct, batch statistics: 90.0 % of the uncorrupted images, 70.0 % at severity 1.");
  EXPECT_EQ(lines[1],
            "Against ReLU, kept statistics: 25.0 points more correct at severity 1, and a drop "
            "that is 30.0 points smaller.");
  EXPECT_EQ(lines[2], "Under random tone curves of severity 1: QAct, batch statistics 85.0 %.");
}

TEST(Evaluation, TablesStandBesideThePapers) {
  EXPECT_TRUE(paper_drops("mnist-small").empty());
  for (const char* dataset : {"cifar10", "cifar100", "tiny-imagenet"}) {
    for (const PaperDrop& drop : paper_drops(dataset)) {
      if (drop.drops.size() == 5) continue;
      ASSERT_EQ(drop.drops.size(), 15u);
      EXPECT_NEAR(drop.drops[0] + drop.drops[5], drop.drops[1], 0.02);  // 0-1 and 1-2 are 0-2
      EXPECT_NEAR(drop.drops[3] + drop.drops[14], drop.drops[4], 0.02);
    }
  }
  const std::string page = make_page("title", some_rows());
  EXPECT_NE(page.find("paper: ResNet18, QAct"), std::string::npos);
  EXPECT_NE(page.find("qact eval &lt;run&gt;"), std::string::npos);
}

TEST(Evaluation, DrawsWhatRowsHold) {
  results::Rows rows = some_rows();
  std::vector<std::string> names;
  for (const Chart& chart : make_charts(rows)) names.push_back(chart.name);
  const std::vector<std::string> expected = {
      "cifar10_resnet18_accuracy",  "cifar10_resnet18_drop",
      "cifar10_resnet18_ece_top",   "cifar10_resnet18_heat_1",
      "cifar10_resnet18_heat_2",    "cifar10_resnet18_tone_accuracy",
      "cifar10_resnet18_tone_drop", "cifar10_resnet18_tone_ece_top"};
  EXPECT_EQ(names, expected);
  rows.push_back({{"kind", "tsne"}, {"corruption", "fog"}});
  EXPECT_THROW(make_charts(rows), std::runtime_error);
}

// Images in the bins of the diagrams at severity 1.
int64_t values_drawn(const results::Rows& rows) {
  int64_t count = 0;
  for (const Chart& chart : make_charts(rows)) {
    if (chart.name != "cifar10_resnet18_reliability_top_1") continue;
    for (const Json& value : chart.spec["data"]["values"]) count += value["values"].get<int64_t>();
  }
  return count;
}

TEST(Evaluation, DiagramsAreOfTheCorruptionsThatTablesAreOf) {
  results::Rows rows = some_rows();
  for (const char* corruption : {"fog", "snow", "tone"}) {
    rows.push_back(score_row("qact", "batch", corruption, 1, 0.8));
    rows.back()["kind"] = "reliability";
    rows.back()["which"] = "top";
    rows.back()["bins"] = {{{"confidence", 0.9}, {"accuracy", 0.8}, {"count", 1000}}};
  }
  EXPECT_EQ(values_drawn(rows), 2000);
}

TEST(Evaluation, NumbersOfHeatMapsCanBePointedAt) {
  for (const Chart& chart : make_charts(some_rows())) {
    if (chart.name.find("heat") == std::string::npos) continue;
    EXPECT_EQ(chart.spec["encoding"]["tooltip"].size(), 3u);
    for (const Json& layer : chart.spec["layer"]) EXPECT_FALSE(layer["mark"].contains("tooltip"));
  }
}

TEST(Csv, QuotesAndFlattens) {
  EXPECT_EQ(csv_of({{"data", {{"values", {{{"a", 1}, {"b", "x,\"y\""}}, {{"c", nullptr}}}}}}}),
            "a,b,c\n1,\"x,\"\"y\"\"\",\n,,\n");
  EXPECT_EQ(csv_of({{"data", {{"values", {{{"x", {1, 2}}, {"y", {3, 4}}}}}}}}), "x,y\n1,3\n2,4\n");
  EXPECT_EQ(csv_of({{"layer", {{{"data", {{"values", {{{"a", 1}}}}}}}}}}), "a\n1\n");
  EXPECT_EQ(csv_of(nlohmann::ordered_json::object()), "\n");
}

TEST(Base64, OfEveryLength) {
  const auto text = [](std::string_view s) {
    return base64({reinterpret_cast<const uint8_t*>(s.data()), s.size()});
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("f"), "Zg==");
  EXPECT_EQ(text("fo"), "Zm8=");
  EXPECT_EQ(text("foo"), "Zm9v");
  EXPECT_EQ(text("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace qact::report
