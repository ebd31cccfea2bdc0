#include "qact/results/toy.h"

#include <algorithm>
#include <numeric>

#include "qact/base/fail.h"
#include "qact/results/curve.h"

namespace qact::results {

double ToyScore::mean() const {
  const auto total = std::accumulate(correct.begin(), correct.end(), int64_t{0});
  return static_cast<double>(total) /
         static_cast<double>(batch_size * static_cast<int64_t>(correct.size()));
}

double ToyScore::worst() const {
  return static_cast<double>(*std::min_element(correct.begin(), correct.end())) /
         static_cast<double>(batch_size);
}

Row to_row(const ToyScore& score) {
  return {{"kind", "toy_score"},
          {"experiment", score.experiment},
          {"network", score.network},
          {"label", score.label},
          {"seed", score.seed},
          {"steps", score.steps},
          {"width", score.width},
          {"batch_size", score.batch_size},
          {"learning_rate", score.learning_rate},
          {"loss", score.loss},
          {"contexts", score.correct.size()},
          {"accuracy", score.mean()},
          {"worst", score.worst()},
          {"bayes", score.bayes},
          {"correct", score.correct}};
}

ToyScore toy_score(const Row& row) {
  ToyScore score;
  row.at("experiment").get_to(score.experiment);
  row.at("network").get_to(score.network);
  row.at("label").get_to(score.label);
  row.at("seed").get_to(score.seed);
  row.at("steps").get_to(score.steps);
  row.at("width").get_to(score.width);
  row.at("batch_size").get_to(score.batch_size);
  row.at("learning_rate").get_to(score.learning_rate);
  row.at("bayes").get_to(score.bayes);
  row.at("loss").get_to(score.loss);
  row.at("correct").get_to(score.correct);
  if (score.correct.empty() || score.batch_size < 1) {
    base::fail("results", "expected a toy_score of some contexts and samples, got ",
               score.correct.size(), " contexts of ", score.batch_size);
  }
  return score;
}

std::vector<ToyScore> toy_scores(const Rows& rows, const std::string& experiment) {
  std::vector<ToyScore> scores;
  for (const Row& row : of_kind(rows, "toy_score")) {
    ToyScore score = toy_score(row);
    if (experiment.empty() || score.experiment == experiment) scores.push_back(std::move(score));
  }
  return scores;
}

namespace {

ToySummary summary_of(const ToyScore& score) {
  ToySummary s;
  s.experiment = score.experiment;
  s.network = score.network;
  s.label = score.label;
  s.steps = score.steps;
  s.width = score.width;
  s.batch_size = score.batch_size;
  s.contexts_per_seed = static_cast<int64_t>(score.correct.size());
  s.learning_rate = score.learning_rate;
  s.bayes = score.bayes;
  return s;
}

// Adds an option to the labels where it differs within an experiment.
template <class Option>
void add_to_labels(std::vector<ToySummary>& all, const char* name, Option ToySummary::* option) {
  std::vector<std::string> labels;
  for (const ToySummary& s : all) {
    const bool differs = std::any_of(all.begin(), all.end(), [&](const ToySummary& other) {
      return other.experiment == s.experiment && other.*option != s.*option;
    });
    labels.push_back(s.label +
                     (differs ? std::string(", ") + name + " " + Row(s.*option).dump() : ""));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].label = labels[i];
}

// Whether the summary has this seed already. Throws where it has other results.
bool is_known(const std::vector<const ToyScore*>& scores, const ToyScore& score) {
  for (const ToyScore* other : scores) {
    if (other->seed != score.seed) continue;
    if (other->correct == score.correct) return true;
    base::fail("results", "expected one result of seed ", score.seed, " of ", score.label,
               " in the toy's ", score.experiment, ", got means ", Row(other->mean()).dump(),
               " and ", Row(score.mean()).dump(), ": leave one of them out");
  }
  return false;
}

}  // namespace

bool ToySummary::matches(const ToyScore& score) const {
  return score.experiment == experiment && score.network == network && score.steps == steps &&
         score.width == width && score.batch_size == batch_size &&
         score.learning_rate == learning_rate &&
         static_cast<int64_t>(score.correct.size()) == contexts_per_seed;
}

std::vector<ToySummary> summarise_toy(const std::vector<ToyScore>& scores) {
  std::vector<ToySummary> summaries;
  std::vector<std::vector<const ToyScore*>> seeds;
  for (const ToyScore& score : scores) {
    const auto found = std::find_if(summaries.begin(), summaries.end(),
                                    [&](const ToySummary& s) { return s.matches(score); });
    const auto at = static_cast<size_t>(found - summaries.begin());
    if (at == summaries.size()) {
      summaries.push_back(summary_of(score));
      seeds.emplace_back();
    }
    if (!is_known(seeds[at], score)) seeds[at].push_back(&score);
  }
  for (size_t i = 0; i < summaries.size(); ++i) {
    ToySummary& summary = summaries[i];
    std::vector<double> means;
    for (const ToyScore* score : seeds[i]) {
      means.push_back(score->mean());
      summary.worst = std::min(summary.worst, score->worst());
    }
    const Mean mean = mean_of(means);
    summary.seeds = mean.count;
    summary.contexts = mean.count * summary.contexts_per_seed;
    summary.mean = mean.mean;
    summary.deviation = mean.deviation;
  }
  add_to_labels(summaries, "steps", &ToySummary::steps);
  add_to_labels(summaries, "width", &ToySummary::width);
  add_to_labels(summaries, "batch size", &ToySummary::batch_size);
  add_to_labels(summaries, "contexts", &ToySummary::contexts_per_seed);
  add_to_labels(summaries, "lr", &ToySummary::learning_rate);
  return summaries;
}

}  // namespace qact::results
