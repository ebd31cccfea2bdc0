// Accuracy, likelihood and Brier score of class probabilities.
#pragma once

#include "qact/metrics/predictions.h"

namespace qact::metrics {

// The share of samples whose label has the highest probability; NaN for no samples.
double accuracy(const Predictions& p);

// One-vs-rest probabilities need not sum to 1: the next two divide each row by its sum. A row of
// zeros counts as uniform.

// The mean of -log p(label); a p of 0 is taken as the smallest normal float.
double negative_log_likelihood(const Predictions& p);
// The mean of sum_k (p_k - [label = k])^2, from 0 to 2.
double brier(const Predictions& p);

}  // namespace qact::metrics
