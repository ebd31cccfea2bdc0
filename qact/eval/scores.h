// Metrics of predictions as fields of `scores` and `reliability` rows.
#pragma once

#include <torch/types.h>

#include "qact/metrics/predictions.h"
#include "qact/results/row.h"

namespace qact::eval {

// The bootstrap interval of the accuracy: the middle 95% over all samples of the same size, drawn
// with replacement.
struct Interval {
  double low = 0, high = 0;
};
Interval bootstrap_accuracy(const metrics::Predictions& p);

// accuracy, accuracy_low, accuracy_high, ece_..., nll, brier, in the order of the file.
results::Row probability_scores(const metrics::Predictions& p);

// map100 and map100_retrieved.
results::Row retrieval_scores(const torch::Tensor& embedding, const std::vector<int64_t>& labels);

// The 15 bins of equal width as {confidence, accuracy, count}; an empty bin's means are null.
// `which` is top or marginal.
results::Row reliability_bins(const metrics::Predictions& p, const std::string& which);

}  // namespace qact::eval
