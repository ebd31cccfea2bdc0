// Calibration error: how far stated probabilities lie from observed frequencies.
//
// Values are put into bins; a bin of n_b values with mean confidence c and frequency y has
// the squared error (c - y)^2, less y (1 - y) / (n_b - 1), what chance alone would add.
// CE = sqrt(sum_b n_b / n * error_b), not below 0; a bin of one value counts 0.
#pragma once

#include <vector>

#include "qact/metrics/probabilities.h"

namespace qact::metrics {

enum class Binning {
  equal_mass,  // 15 bins of equal counts, the default for every method
  per_value,   // one bin for each value that occurs
  as_library,  // per_value where every class has fewer than n / 4 values, else equal_mass:
               // what the public verified-calibration library does on its own
};

// One class against the rest: sqrt(mean over classes of CE^2). 0 for no samples.
double calibration_error_marginal(const Predictions& p, Binning binning = Binning::equal_mass);

// The highest probability against whether that class was right.
double calibration_error_top(const Predictions& p, Binning binning = Binning::equal_mass);

// The plain expected calibration error of the highest probability: mean |c - y| over 15
// bins of equal width.
double ece(const Predictions& p);

// A reliability diagram's points in `bins` of equal width: of the highest probability, or
// of every class's against the rest, all classes together.
struct ReliabilityBin {
  int64_t count = 0;
  double confidence = 0;  // means over the bin
  double accuracy = 0;
};
std::vector<ReliabilityBin> reliability(const Predictions& p, int bins = 15);
std::vector<ReliabilityBin> reliability_marginal(const Predictions& p, int bins = 15);

}  // namespace qact::metrics
