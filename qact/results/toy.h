// Rows of the toy experiment, and their summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// One trained network, evaluated in many contexts. kind: toy_score.
struct ToyScore {
  std::string experiment, network, label;
  int64_t seed = 0, steps = 0, width = 0, batch_size = 0;
  double learning_rate = 0, bayes = 0;
  double loss = 0;               // of the last step of training
  std::vector<int64_t> correct;  // of batch_size samples, in each context

  double mean() const;
  double worst() const;
};

Row to_row(const ToyScore& score);
ToyScore toy_score(const Row& row);

// All seeds of one network with the same options.
struct ToySummary {
  std::string experiment, network;
  std::string label;  // names the options that differ between summaries
  int64_t steps = 0, width = 0, batch_size = 0, contexts_per_seed = 0;
  double learning_rate = 0;
  int64_t seeds = 0, contexts = 0;
  double mean = 0;       // over seeds
  double deviation = 0;  // standard deviation between seeds; 0 for one seed
  double worst = 1;      // context of all seeds
  double bayes = 0;

  // Whether the score is of this network and these options.
  bool matches(const ToyScore& score) const;
};

// In the order in which the networks first appear. A seed given twice counts once; with two results
// it is an error.
std::vector<ToySummary> summarise_toy(const std::vector<ToyScore>& scores);

// The rows of kind toy_score; of one experiment, or of all.
std::vector<ToyScore> toy_scores(const Rows& rows, const std::string& experiment = "");

}  // namespace qact::results
