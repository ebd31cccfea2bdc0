#include "qact/results/disambiguate.h"

#include <gtest/gtest.h>

#include <set>

#include "qact/results/curve.h"
#include "tests/base/message.h"
#include "tests/results/example_rows.h"

namespace qact::results {
namespace {

std::string refusal(const Rows& rows) {
  return message_of([&] { scores(rows); });
}

size_t curve_count(const Rows& rows) { return curves(scores(rows)).size(); }

// Whatever field differs, rows differ, and seeds that differ in it are not averaged.
TEST(Disambiguate, EveryFieldMatters) {
  const Row row = score_row(example_evaluation("fog", 3), 0.5);
  const std::set<std::string> cells = {"corruption", "severity", "seed"};
  const std::set<std::string> derived = {"n", "epoch"};
  const Evaluation any;
  visit_fields(any, [&](const char* name, const auto&, Role role) {
    if (role == Role::optional_identity || name == std::string("kind") || derived.contains(name))
      return;
    Row other = row;
    other["accuracy"] = 0.6;
    if (other[name].is_object()) {
      other[name]["lr"] = 0.01;
    } else if (other[name].is_string()) {
      other[name] = "other";
    } else {
      other[name] = 9;
    }
    if (name == std::string("official")) other[name] = "folder";
    if (name == std::string("frost")) other[name] = "official";
    if (name == std::string("mixture")) other[name] = "fog+snow";
    EXPECT_EQ(identity(row) == identity(other), role == Role::derived) << name;
    // Folders that hold the same images do not matter, nor does frost where there is none: that
    // these two have other accuracies is an error.
    if (name == std::string("official") || name == std::string("frost")) {
      EXPECT_NE(refusal({row, other}), kNothingThrown) << name;
      return;
    }
    EXPECT_EQ(curve_count({row, other}), cells.contains(name) ? 1u : 2u) << name;
    EXPECT_EQ(curve_count({other, row}), cells.contains(name) ? 1u : 2u) << name;
  });
}

// One seed, two models: by another version, on other hardware.
TEST(Disambiguate, ModelsMatterOnlyWhereASeedHasTwo) {
  Evaluation e = example_evaluation("fog", 3), other = e, third = e;
  other.seed = 1;
  other.model_hash = "1111111111111111";
  third.model_hash = "2222222222222222";
  EXPECT_EQ(curve_count({score_row(e, 0.5), score_row(other, 0.6)}), 1u);
  const auto apart =
      curves(scores({score_row(e, 0.5), score_row(other, 0.6), score_row(third, 0.7)}));
  ASSERT_EQ(apart.size(), 3u);
  for (const Curve& curve : apart) EXPECT_EQ(curve.seeds().size(), 1u);
}

Evaluation official(const std::string& folder, const std::string& corruption,
                    const std::string& hash) {
  Evaluation e = example_evaluation(corruption, corruption == "none" ? 0 : 1);
  e.setting.source = "official";
  e.setting.official = folder;
  e.data_hash = hash;
  return e;
}

TEST(Disambiguate, OfficialDatasetsDifferByTheirImages) {
  const std::string clean = example_evaluation().data_hash;
  const Rows first = {score_row(official("a", "none", clean), 0.9),
                      score_row(official("a", "fog", "1"), 0.5),
                      score_row(official("a", "snow", "2"), 0.4)};
  Rows both = first;
  both.push_back(score_row(official("b", "none", clean), 0.9));
  both.push_back(score_row(official("b", "fog", "3"), 0.6));
  both.push_back(score_row(official("b", "snow", "2"), 0.4));  // not random: the same images
  const auto apart = curves(scores(both));
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_EQ(apart[0].scores.size(), 3u);
  EXPECT_EQ(apart[1].scores.size(), 3u);
  EXPECT_EQ(*apart[1].setting.official, "b");
  EXPECT_EQ(apart[1].mean("accuracy", 1, {"fog", "snow"}), 0.5);

  // The same dataset in another folder, evaluated with another seed.
  Rows moved = first;
  for (const Row& row : first) {
    moved.push_back(row);
    moved.back()["official"] = "elsewhere/a";
    moved.back()["seed"] = 1;
    moved.back()["model_hash"] = "1111111111111111";
  }
  ASSERT_EQ(curve_count(moved), 1u);
  EXPECT_EQ(curves(scores(moved))[0].seeds().size(), 2u);

  // The same folder, with other images since.
  const Rows replaced = {first[1], score_row(official("a", "fog", "9"), 0.1)};
  EXPECT_EQ(curve_count(replaced), 2u);

  // And evaluated anew: each evaluation stays one curve, what did not change included.
  Rows twice = first;
  for (const auto& [corruption, hash] :
       {std::pair("none", clean), {"fog", std::string("8")}, {"snow", std::string("9")}}) {
    Evaluation e = official("a", corruption, hash);
    e.seed = 1;
    e.model_hash = "1111111111111111";
    twice.push_back(score_row(e, 0.3));
  }
  const auto two = curves(scores(twice));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].scores.size(), 3u);
  EXPECT_EQ(two[1].scores.size(), 3u);
}

// The rows of a mixture depend on the images of all its corruptions, and have another digest.
TEST(Disambiguate, AMixtureIsNoOtherVersionOfItsCorruptions) {
  Evaluation mixed = official("a", "fog", "2");
  mixed.setting.stream = "mixed";
  mixed.setting.mixture = "fog+snow";
  Evaluation other = mixed;
  other.setting.mixture = "fog+frost";
  other.data_hash = "3";
  const auto all = curves(scores(
      {score_row(official("a", "fog", "1"), 0.5), score_row(mixed, 0.4), score_row(other, 0.3)}));
  ASSERT_EQ(all.size(), 3u);
  for (const Curve& curve : all) {
    EXPECT_EQ(curve.setting.data_hash, "");
    EXPECT_FALSE(curve.setting.official);
  }
}

TEST(Disambiguate, OtherCorruptionsBelongToAllFrostTextures) {
  Evaluation procedural = example_evaluation("frost", 1), published = procedural;
  procedural.setting.frost = "procedural";
  published.setting.frost = "official";
  const Rows rows = {score_row(example_evaluation(), 0.9),
                     score_row(example_evaluation("fog", 1), 0.8), score_row(procedural, 0.6),
                     score_row(published, 0.4)};
  const auto both = curves(scores(rows));
  ASSERT_EQ(both.size(), 2u);
  for (const Curve& curve : both) {
    EXPECT_EQ(curve.scores.size(), 3u);
    EXPECT_NEAR(curve.mean("accuracy", 1, {"fog", "frost"}),
                curve.setting.frost == "official" ? 0.6 : 0.7, 1e-12);
  }
  EXPECT_EQ(curve_count({rows[0], rows[1], rows[2]}), 1u);
}

}  // namespace
}  // namespace qact::results
