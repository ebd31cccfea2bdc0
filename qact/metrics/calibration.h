// Calibration error: how far predicted probabilities lie from observed frequencies.
//
// Values are put into bins. A bin of n_b values with mean confidence c and frequency y has the
// squared error (c - y)^2, minus its bias y (1 - y) / (n_b - 1), the part that sampling noise adds.
// CE = sqrt(sum_b n_b / n * error_b), not below 0; a bin of one value counts 0.
#pragma once

#include <vector>

#include "qact/metrics/predictions.h"

namespace qact::metrics {

enum class Binning {
  equal_mass,  // 15 bins of equal counts, the default
  per_value,   // one bin for each value that occurs
  as_library,  // per_value where every class has fewer than n / 4 values, else equal_mass:
               // the default of the verified-calibration library
};

// Of each class against the rest: sqrt(mean over classes of CE^2). 0 for no samples.
double calibration_error_marginal(const Predictions& p, Binning binning = Binning::equal_mass);

// Of the highest probability, against whether that class is correct.
double calibration_error_top(const Predictions& p, Binning binning = Binning::equal_mass);

// The expected calibration error (ECE) of the highest probability: mean |c - y| over 15 bins of
// equal width.
double ece(const Predictions& p);

// The points of a reliability diagram with `bins` of equal width: of the highest probability, or of
// each class against the rest, all classes pooled.
struct ReliabilityBin {
  int64_t count = 0;
  double confidence = 0;  // means over the bin
  double accuracy = 0;
};
std::vector<ReliabilityBin> reliability(const Predictions& p, int bins = 15);
std::vector<ReliabilityBin> reliability_marginal(const Predictions& p, int bins = 15);

}  // namespace qact::metrics
