// Curves, their groups and their labels.
#include "qact/report/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "qact/report/page.h"
#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

// Of frost, which one network alone was evaluated under.
const std::string kWithoutFrost =
    "Not in the means over corruptions: frost. Not every evaluation has it at all of its "
    "severities.";

TEST(Groups, CompareOnCommonCorruptions) {
  const auto all = groups(example_rows());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].corruptions, (std::vector<std::string>{"fog", "snow"}));
  ASSERT_EQ(all[0].curves.size(), 2u);
  EXPECT_EQ(all[0].curves[0].label, "QAct, batch statistics");
  EXPECT_EQ(all[0].curves[1].label, "ReLU, running statistics");
  EXPECT_EQ(all[0].slug("drop"), "cifar10_resnet18_drop");
  EXPECT_NEAR(all[0].curves[0].mean("accuracy", 1, all[0].corruptions), 0.7, 1e-12);
  EXPECT_NEAR(all[0].curves[0].mean("drop", 1, all[0].corruptions), 0.2, 1e-12);
  EXPECT_TRUE(std::isnan(all[0].curves[0].mean("map100", 1, all[0].corruptions)));
  EXPECT_EQ(all[0].notes, std::vector<std::string>{kWithoutFrost});
}

std::vector<std::string> labels_of(const Group& group) {
  std::vector<std::string> labels;
  for (const Curve& curve : group.curves) labels.push_back(curve.label);
  return labels;
}

TEST(Groups, NetworksThatWereTrainedOtherwiseAreToldApartInAnyOrder) {
  const results::Rows a = example_rows(), b = with_lr("0.01");
  const Group group = groups(joined(a, b))[0];
  EXPECT_EQ(labels_of(group), (std::vector<std::string>{"QAct, lr 0.01, batch statistics",
                                                        "QAct, lr 0.1, batch statistics",
                                                        "ReLU, lr 0.1, running statistics"}));
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
  results::Rows rows = example_rows();
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
                                      "first 20 images; shown is the one on all images.",
                                      kWithoutFrost}));
  const auto charts = make_charts(rows);
  ASSERT_EQ(charts.size(), full.size());
  for (size_t i = 0; i < charts.size(); ++i) EXPECT_EQ(charts[i].spec, full[i].spec);
  EXPECT_NE(make_page("title", rows).find(group.notes[0]), std::string::npos);
}

// A row of another mode: an incomplete evaluation.
TEST(Groups, AnIncompleteEvaluationTakesNoChartAway) {
  results::Rows rows = example_rows();
  const auto full = make_charts(rows);
  rows.push_back(score_row("qact", "tracked", "none", 0, 0.9));
  const Group group = groups(rows)[0];
  EXPECT_EQ(group.corruptions, (std::vector<std::string>{"fog", "snow"}));
  ASSERT_EQ(group.notes.size(), 2u);
  EXPECT_EQ(
      group.notes[0],
      "Not in the means over corruptions: QAct, running statistics was evaluated on 0 of the 2 "
      "corruptions in full.");
  const auto charts = make_charts(rows);
  ASSERT_EQ(charts.size(), full.size());
}

// As after Ctrl-C: the last corruption lacks severities.
TEST(Groups, CorruptionsThatAreIncompleteAreNamed) {
  results::Rows rows;
  for (const char* corruption : {"fog", "snow"}) {
    for (const int severity : {1, 2, 3})
      rows.push_back(score_row("qact", "batch", corruption, severity, 0.8));
  }
  EXPECT_TRUE(groups(rows)[0].notes.empty());
  rows.push_back(score_row("qact", "batch", "frost", 1, 0.8));
  rows.push_back(score_row("qact", "batch", "tone", 1, 0.8));
  EXPECT_EQ(groups(rows)[0].notes, std::vector<std::string>{kWithoutFrost});
  rows.push_back(score_row("qact", "batch", "contrast", 1, 0.8));
  EXPECT_EQ(groups(rows)[0].notes,
            std::vector<std::string>{"Not in the means over corruptions: contrast, frost. Not "
                                     "every evaluation has them at all of its severities."});
}

TEST(Groups, EmbeddingsHaveTheNamesOfTheirCurves) {
  results::Rows rows = joined(example_rows(), joined(with_lr("0.01"), with_lr("0.01", 1)));
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

TEST(Groups, LabelsNameWhatIsNotUsualAndStayApart) {
  results::Rows rows = example_rows();
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
                                      "QAct reference, prior of 16", "ReLU, running statistics"}));
}

// One corruption at a time first; the colour of a network does not depend on the stream.
TEST(Groups, LabelsNameStreamsAndAdaptation) {
  results::Rows rows;
  for (const char* stream : {"mixed", "single", "correlated"}) {
    for (const char* adapt : {"tent", "none"}) {
      rows.push_back(score_row("relu", "batch", "fog", 1, 0.8));
      rows.back()["stream"] = stream;
      rows.back()["adapt"] = adapt;
      if (stream == std::string("mixed")) rows.back()["mixture"] = "fog+snow";
    }
  }
  const Group group = groups(rows)[0];
  EXPECT_EQ(labels_of(group),
            (std::vector<std::string>{"ReLU, batch statistics", "ReLU, TENT, batch statistics",
                                      "ReLU, batch statistics, mixed corruptions",
                                      "ReLU, TENT, batch statistics, mixed corruptions",
                                      "ReLU, batch statistics, correlated labels",
                                      "ReLU, TENT, batch statistics, correlated labels"}));
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(group.curves[i].colour, group.curves[i - 2].colour);
  EXPECT_NE(group.curves[0].colour, group.curves[1].colour);
  // A baseline is one on the same stream, or none.
  const Setting& mixed = group.curves[2].setting;
  EXPECT_EQ(group.closest(mixed, "relu", "batch"), &group.curves[2]);
  EXPECT_EQ(group.closest(mixed, "relu", "batch", "tent"), &group.curves[3]);
  Setting other = mixed;
  other.stream = "another";
  EXPECT_EQ(group.closest(other, "relu", "batch"), nullptr);
}

// Two mixtures are two curves, and the label says which.
TEST(Groups, LabelsNameTheMixtureWhereThereAreTwo) {
  results::Rows rows;
  for (const char* mixture : {"fog+snow", "fog+frost+snow"}) {
    rows.push_back(score_row("relu", "batch", "fog", 1, 0.8));
    rows.back()["stream"] = "mixed";
    rows.back()["mixture"] = mixture;
  }
  EXPECT_EQ(
      labels_of(groups(rows)[0]),
      (std::vector<std::string>{"ReLU, batch statistics, mixed corruptions, mixture fog+frost+snow",
                                "ReLU, batch statistics, mixed corruptions, mixture fog+snow"}));
}

// Textures are a field of rows with frost alone.
TEST(Groups, LabelsStayApartWhereOnlyOneCurveHasFrost) {
  results::Rows rows;
  for (const char* corruption : {"fog", "frost"}) {
    rows.push_back(score_row("relu", "tracked", corruption, 1, 0.8));
    if (corruption == std::string("frost")) rows.back()["frost"] = "procedural";
  }
  rows.push_back(score_row("relu", "tracked", "fog", 1, 0.7));
  rows.back()["batch_size"] = 100;
  EXPECT_EQ(labels_of(groups(rows)[0]),
            (std::vector<std::string>{"ReLU, running statistics, batches of 100",
                                      "ReLU, running statistics, batches of 500"}));
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

TEST(Series, HasABandBetweenCorruptionsOrBetweenSeeds) {
  results::Rows rows = example_rows();
  const Group one = groups(rows)[0];
  const Series between = series_of(one.curves[0], "accuracy", one.corruptions);
  ASSERT_EQ(between.points.size(), 2u);
  EXPECT_FALSE(between.over_seeds);
  EXPECT_NEAR(between.points[1].mean, 0.7, 1e-12);
  EXPECT_NEAR(between.points[1].deviation, std::sqrt(0.02), 1e-12);

  rows.push_back(score_row("qact", "batch", "none", 0, 0.9, 1));
  rows.push_back(score_row("qact", "batch", "fog", 1, 0.9, 1));
  rows.push_back(score_row("qact", "batch", "snow", 1, 0.7, 1));
  const Group two = groups(rows)[0];
  const Series seeds = series_of(two.curves[0], "accuracy", two.corruptions);
  EXPECT_TRUE(seeds.over_seeds);
  // ReLU has one seed still.
  EXPECT_NE(make_charts(rows)[0].caption.find("between seeds; where there is one seed, between "),
            std::string::npos);
  EXPECT_NEAR(seeds.points[1].mean, 0.75, 1e-12);
  EXPECT_NEAR(seeds.points[1].deviation, std::sqrt(0.005), 1e-12);
}

}  // namespace
}  // namespace qact::report
