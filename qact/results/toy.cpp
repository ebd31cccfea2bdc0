#include "qact/results/toy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
    throw std::runtime_error("[results] expected a toy_score of some contexts and samples, got " +
                             std::to_string(score.correct.size()) + " contexts of " +
                             std::to_string(score.batch_size));
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

std::vector<ToySummary> summarise_toy(const std::vector<ToyScore>& scores) {
  std::vector<ToySummary> summaries;
  std::vector<std::vector<double>> means;
  for (const ToyScore& score : scores) {
    auto found = std::find_if(summaries.begin(), summaries.end(), [&](const ToySummary& s) {
      return s.experiment == score.experiment && s.network == score.network;
    });
    if (found == summaries.end()) {
      found = summaries.insert(found, {.experiment = score.experiment,
                                       .network = score.network,
                                       .label = score.label,
                                       .bayes = score.bayes});
      means.emplace_back();
    }
    found->seeds += 1;
    found->contexts += static_cast<int64_t>(score.correct.size());
    found->worst = std::min(found->worst, score.worst());
    means[static_cast<size_t>(found - summaries.begin())].push_back(score.mean());
  }
  for (size_t i = 0; i < summaries.size(); ++i) {
    const auto n = static_cast<double>(means[i].size());
    const double mean = std::accumulate(means[i].begin(), means[i].end(), 0.0) / n;
    double squares = 0;
    for (const double m : means[i]) squares += (m - mean) * (m - mean);
    summaries[i].mean = mean;
    summaries[i].deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  }
  return summaries;
}

}  // namespace qact::results
