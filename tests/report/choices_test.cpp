#include "qact/report/choices.h"

#include <gtest/gtest.h>

#include "qact/report/page.h"
#include "tests/report/evaluation_rows.h"

namespace qact::report {
namespace {

struct Made {
  const char *activation, *mode;
  double clean, corrupted;
  int64_t batch_size = 500;
  const char* stream = "single";
  const char* adapt = "none";
  const char* placement = "early";
};

// Under one corruption of severity 1.
results::Rows rows_of(const std::vector<Made>& all, const char* corruption = "fog") {
  results::Rows rows;
  for (const Made& m : all) {
    for (const int severity : {0, 1}) {
      results::Row row = score_row(m.activation, m.mode, severity == 0 ? "none" : corruption,
                                   severity, severity == 0 ? m.clean : m.corrupted);
      row.update({{"batch_size", m.batch_size},
                  {"stream", m.stream},
                  {"adapt", m.adapt},
                  {"placement", m.placement}});
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<std::string> lines_of(const results::Rows& rows) {
  const Group group = groups(rows)[0];
  return choices_text(group, choices(group));
}

TEST(Choices, AnswerOnceForEachStreamAndBatchSize) {
  const auto lines = lines_of(rows_of({{"relu", "tracked", 0.9, 0.5},
                                       {"relu", "batch", 0.9, 0.75},
                                       {"qact", "batch", 0.9, 0.8},
                                       {"qact", "tracked", 0.9, 0.6},
                                       {"ibn-relu", "batch", 0.9, 0.76},
                                       {"ibn-relu", "tracked", 0.9, 0.65},
                                       {"relu", "batch", 0.9, 0.7, 16},
                                       {"qact", "batch", 0.9, 0.6, 16},
                                       {"relu", "batch", 0.9, 0.6, 200, "mixed"},
                                       {"relu", "batch", 0.9, 0.66, 200, "mixed", "tent"},
                                       {"ibn-relu", "batch", 0.9, 0.7, 200, "mixed"},
                                       {"qact", "batch", 0.9, 0.4, 200, "correlated"}}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "For batches of 500 of one corruption, at severity 1: QAct, batch statistics, batches "
            "of 500, 80.0 %; of another activation InstanceNorm/BatchNorm + ReLU, batch "
            "statistics, batches of 500, 76.0 %.");
  EXPECT_TRUE(lines[1].starts_with("For batches of 16 of one corruption, at severity 1: ReLU"));
  // With running statistics the batch does not matter.
  EXPECT_NE(lines[1].find("another activation InstanceNorm/BatchNorm + ReLU, running"),
            std::string::npos)
      << lines[1];
  EXPECT_TRUE(lines[2].starts_with("For batches of 200 of mixed corruptions, at severity 1: Inst"));
  EXPECT_NE(lines[2].find("ReLU, TENT, batch"), std::string::npos) << lines[2];
  EXPECT_TRUE(
      lines[3].starts_with("For batches of 200 with correlated labels, at severity 1: "
                           "InstanceNorm/BatchNorm + ReLU, running"))
      << lines[3];
  EXPECT_TRUE(lines[4].starts_with("For single images, at severity 1: InstanceNorm/"));
  EXPECT_NE(lines[4].find("of another activation QAct, running"), std::string::npos) << lines[4];
}

// A curve that does not have all corruptions has no mean.
TEST(Choices, KnowGamma4ApartAndSkipWhatIsIncomplete) {
  results::Rows rows = rows_of({{"relu", "batch", 0.9, 0.7}, {"qact", "batch", 0.9, 0.8}});
  const auto more = [&](const char* activation, const char* corruption, double accuracy) {
    rows.push_back(score_row(activation, "batch", corruption, 1, accuracy));
  };
  more("relu", "gamma4", 0.9), more("qact", "gamma4", 0.8);
  EXPECT_EQ(lines_of(rows),
            (std::vector<std::string>{
                "For batches of 500 of one corruption, at severity 1: QAct, batch statistics, "
                "80.0 %; of another activation ReLU, batch statistics, 70.0 %.",
                "For batches of 500 of one corruption, under gamma4: ReLU, batch statistics, "
                "90.0 %; of another activation QAct, batch statistics, 80.0 %."}));
  const Group group = groups(rows)[0];
  const Table table = choices_table(group, choices(group));
  EXPECT_EQ(table.rows,
            (std::vector<std::vector<std::string>>{
                {"batches of 500 of one corruption, at severity 1", "QAct, batch statistics",
                 "90.0", "80.0"},
                {"best of another activation", "ReLU, batch statistics", "90.0", "70.0"},
                {"batches of 500 of one corruption, under gamma4", "ReLU, batch statistics", "90.0",
                 "90.0"},
                {"best of another activation", "QAct, batch statistics", "90.0", "80.0"}}));
  for (const results::Row& row : rows_of({{"selu", "batch", 0.9, 0.99}}, "snow"))
    rows.push_back(row);
  for (const char* activation : {"relu", "qact"}) more(activation, "snow", 0.7);
  for (const std::string& line : lines_of(rows)) {
    EXPECT_EQ(line.find("SELU"), std::string::npos) << line;
  }
}

// 10 images say nothing against all of them; textures matter where frost is among the corruptions.
TEST(Choices, AreBetweenAccuraciesOnTheSameImages) {
  const auto with = [](const Made& made, const results::Row& fields, const char* corruption) {
    results::Rows rows = rows_of({made}, corruption);
    for (results::Row& row : rows) row.update(fields);
    return rows;
  };
  const results::Row same = results::Row::object();
  const Made relu = {"relu", "batch", 0.9, 0.5}, qact = {"qact", "batch", 0.9, 0.6},
             ibn = {"ibn-relu", "batch", 0.9, 0.7};
  const auto choose = [&](const results::Row& fields, const char* corruption) {
    return lines_of(joined(joined(with(relu, same, corruption), with(qact, same, corruption)),
                           with(ibn, fields, corruption)));
  };
  for (const results::Row& fields :
       {results::Row{{"limit", 10}, {"n", 10}}, results::Row{{"clean_hash", "another"}},
        results::Row{{"source", "official"}}, results::Row{{"data_seed", 1}}}) {
    const auto lines = choose(fields, "fog");
    ASSERT_EQ(lines.size(), 1u) << fields;
    EXPECT_NE(lines[0].find(": QAct"), std::string::npos) << lines[0];
    EXPECT_EQ(lines[0].find("InstanceNorm"), std::string::npos) << lines[0];
  }
  EXPECT_TRUE(choose(same, "fog")[0].find(": Inst") != std::string::npos);

  results::Rows rows = joined(with(relu, same, "fog"), with(qact, same, "fog"));
  for (const Made& made : {qact, ibn}) {
    rows = joined(rows, with(made, {{"limit", 10}, {"n", 10}, {"placement", "all"}}, "fog"));
  }
  const auto lines = lines_of(rows);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with(
      "For batches of 500 of one corruption, all images, at severity 1: QAct early,"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with(
      "For batches of 500 of one corruption, 10 images, at severity 1: InstanceNorm/"))
      << lines[1];

  const auto textures = [&](const char* name) {
    return with({"ibn-relu", "batch", 0.9, 0.7}, {{"frost", name}}, "frost");
  };
  const results::Rows two = joined(with(relu, {{"frost", "official"}}, "frost"),
                                   with(qact, {{"frost", "official"}}, "frost"));
  EXPECT_NE(lines_of(joined(two, textures("official")))[0].find(": Inst"), std::string::npos);
  EXPECT_NE(lines_of(joined(two, textures("procedural")))[0].find(": QAct"), std::string::npos);
}

TEST(Choices, NeedTwoActivations) {
  EXPECT_TRUE(
      lines_of(rows_of({{"qact", "batch", 0.9, 0.8}, {"qact", "tracked", 0.9, 0.7}})).empty());
}

TEST(Headline, IsPlainReluAdaptedReluAndSplit) {
  const auto labels = [](const results::Rows& rows) {
    const Group group = groups(rows)[0];
    std::vector<std::string> all;
    for (const Curve* curve : headline(group)) all.push_back(curve->label);
    return all;
  };
  std::vector<Made> made = {{"relu", "tracked", 0.9, 0.5},
                            {"qact", "batch", 0.9, 0.9, 16, "single", "none", "split"},
                            {"qact", "batch", 0.9, 0.7, 500, "single", "none", "split"},
                            {"qact", "batch", 0.9, 0.8},
                            {"relu", "batch", 0.9, 0.6, 16}};
  EXPECT_EQ(
      labels(rows_of(made)),
      (std::vector<std::string>{"ReLU, running statistics", "ReLU, batch statistics, batches of 16",
                                "QAct split, batch statistics, batches of 16"}));
  made.pop_back();
  EXPECT_TRUE(labels(rows_of(made)).empty());
  made.push_back({"relu", "batch", 0.9, 0.6});
  EXPECT_EQ(labels(rows_of(made)),
            (std::vector<std::string>{"ReLU, running statistics",
                                      "ReLU, batch statistics, batches of 500",
                                      "QAct split, batch statistics, batches of 500"}));
}

// Evaluated with tone alone, beside a network that has the corruptions.
TEST(Headline, NeedsTheCorruptionsOfTheMeans) {
  results::Rows rows = rows_of(
      {{"relu", "tracked", 0.9, 0.5}, {"relu", "batch", 0.9, 0.6}, {"qact", "batch", 0.9, 0.7}},
      "tone");
  for (const results::Row& row : rows_of({{"ibn-relu", "batch", 0.9, 0.6}})) rows.push_back(row);
  const Group group = groups(rows)[0];
  ASSERT_EQ(group.corruptions, std::vector<std::string>{"fog"});
  EXPECT_TRUE(headline(group).empty());
  EXPECT_NE(make_page("title", rows).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace qact::report
