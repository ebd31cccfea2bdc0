// Rows of the toy experiment, and what is read off them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// One trained network over many contexts. kind: toy_score.
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

// All seeds of one network, trained and tried in one way.
struct ToySummary {
  std::string experiment, network, label;  // the label names what differs from other summaries
  int64_t steps = 0, width = 0, batch_size = 0, each = 0;  // contexts of each seed
  double learning_rate = 0;
  int64_t seeds = 0, contexts = 0;
  double mean = 0;       // over seeds
  double deviation = 0;  // of the seeds' means; 0 for one seed
  double worst = 1;      // context of any seed
  double bayes = 0;

  bool has(const ToyScore& score) const;
};

// In the order in which the networks first appear. A seed given twice counts once; with two results
// it is an error.
std::vector<ToySummary> summarise_toy(const std::vector<ToyScore>& scores);

// The toy_score rows among `rows`; of one experiment, or of all.
std::vector<ToyScore> toy_scores(const Rows& rows, const std::string& experiment = "");

}  // namespace qact::results
