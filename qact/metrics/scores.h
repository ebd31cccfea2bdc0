// Accuracy, likelihood and Brier score of class probabilities.
#pragma once

#include "qact/metrics/probabilities.h"

namespace qact::metrics {

// The share of samples whose highest probability is their label's; NaN for none.
double accuracy(const Predictions& p);

// One-vs-rest probabilities need not sum to 1; these two read each row as shares of its
// sum. A row of zeros counts as uniform.
//
// Mean of -log p(label), a p of 0 taken as the smallest normal float.
double negative_log_likelihood(const Predictions& p);
// Mean of sum_k (p_k - [label = k])^2, from 0 to 2.
double brier(const Predictions& p);

}  // namespace qact::metrics
