#include "qact/toy/toy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "qact/results/toy.h"

namespace qact::toy {
namespace {

ToyOptions quick_toy() {
  ToyOptions options;
  options.seeds = 2;
  options.steps = 5;
  options.width = 16;
  options.batch_size = 32;
  options.contexts = 10;
  options.threads = 1;
  return options;
}

TEST(Toy, RepeatsWhateverTheNumberOfThreads) {
  ToyOptions options = quick_toy();
  const results::Rows once = run_toy(options);
  EXPECT_EQ(run_toy(options), once);
  for (const int threads : {2, 5}) {
    options.threads = threads;
    EXPECT_EQ(run_toy(options), once) << threads;
  }
}

// Pinned from a first run; other processors and torch releases round differently.
TEST(Toy, LossesStayWhatTheyWere) {
  const std::map<std::string, double> golden = {
      {"circle relu", 0.6816},        {"circle batchnorm_relu", 0.6609},
      {"circle qact", 0.5743},        {"monotone relu", 0.6732},
      {"monotone batchnorm", 0.6740}, {"monotone batchnorm_relu", 0.6709},
      {"monotone qact", 0.6716},      {"monotone qact_without_norm", 0.6724},
  };
  for (const auto& score : results::toy_scores(run_toy(quick_toy()))) {
    if (score.seed != 0) continue;
    const auto found = golden.find(score.experiment + " " + score.network);
    ASSERT_NE(found, golden.end()) << score.network;
    EXPECT_NEAR(score.loss, found->second, 1e-3) << found->first;
  }
}

TEST(Toy, SeedsDiffer) {
  const auto scores = results::toy_scores(run_toy(quick_toy()), "circle");
  ASSERT_EQ(scores.size(), 6u);
  EXPECT_NE(scores[4].correct, scores[5].correct);
}

TEST(Toy, AFirstExperimentDoesNotChangeTheSecond) {
  ToyOptions options = quick_toy();
  const auto both = results::toy_scores(run_toy(options), "monotone");
  options.experiments = {"monotone"};
  const auto alone = results::toy_scores(run_toy(options));
  ASSERT_EQ(both.size(), alone.size());
  for (size_t i = 0; i < both.size(); ++i) EXPECT_EQ(to_row(both[i]), to_row(alone[i]));
}

// What the full experiment shows, at a size that takes seconds.
TEST(Toy, LearnsWhatOnlyAContextTells) {
  ToyOptions options;
  options.seeds = 1;
  options.steps = 300;
  options.batch_size = 128;
  options.contexts = 100;
  std::map<std::string, double> mean;
  for (const auto& s : results::summarise_toy(results::toy_scores(run_toy(options)))) {
    mean[s.experiment + " " + s.network] = s.mean;
  }
  EXPECT_GT(mean["circle qact"], 0.95);
  EXPECT_GT(mean["circle batchnorm_relu"], 0.95);
  EXPECT_NEAR(mean["circle relu"], 0.5, 0.1);
  EXPECT_GT(mean["monotone qact"], mean["monotone batchnorm"] + 0.02);
  EXPECT_GT(mean["monotone qact_without_norm"], mean["monotone batchnorm"] + 0.02);
}

TEST(Toy, ProgressGrowsToOneAndMayStopTheRun) {
  double last = 0;
  run_toy(quick_toy(), [&](double share) {
    EXPECT_GE(share, last);
    last = share;
    return true;
  });
  EXPECT_EQ(last, 1.0);
  ToyOptions endless = quick_toy();
  endless.steps = 1'000'000;
  EXPECT_THROW(run_toy(endless, [](double) { return false; }), base::Interrupted);
}

TEST(Toy, RefusesWhatMakesNoSense) {
  const auto refused = [](auto change) {
    ToyOptions options = quick_toy();
    change(options);
    EXPECT_THROW(run_toy(options), std::invalid_argument);
  };
  refused([](ToyOptions& o) { o.experiments = {}; });
  refused([](ToyOptions& o) { o.experiments = {"square"}; });
  refused([](ToyOptions& o) { o.seeds = 0; });
  refused([](ToyOptions& o) { o.steps = 0; });
  refused([](ToyOptions& o) { o.width = 0; });
  refused([](ToyOptions& o) { o.batch_size = 33; });
  refused([](ToyOptions& o) { o.batch_size = 2; });
  refused([](ToyOptions& o) { o.contexts = 0; });
  refused([](ToyOptions& o) { o.learning_rate = std::nan(""); });
  refused([](ToyOptions& o) { o.threads = -1; });
}

}  // namespace
}  // namespace qact::toy
