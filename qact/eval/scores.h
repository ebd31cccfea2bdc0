// Outputs of a network to numbers: what a `scores` row says, and `reliability` rows.
#pragma once

#include <torch/types.h>

#include "qact/metrics/predictions.h"
#include "qact/results/row.h"

namespace qact::eval {

// The middle 95% of the accuracies of all samples of the same size, drawn with replacement.
struct Interval {
  double low = 0, high = 0;
};
Interval bootstrap_accuracy(const metrics::Predictions& p);

// accuracy, accuracy_low, accuracy_high, ece_..., nll, brier, in the order of the file.
results::Row probability_scores(const metrics::Predictions& p);

// map100 and map100_retrieved.
results::Row retrieval_scores(const torch::Tensor& embedding, const std::vector<int64_t>& labels);

// The 15 bins of equal width, each {confidence, accuracy, count}; means of none are null.
results::Row reliability_bins(const metrics::Predictions& p, const std::string& which);

}  // namespace qact::eval
