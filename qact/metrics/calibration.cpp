#include "qact/metrics/calibration.h"

#include <algorithm>
#include <cmath>

namespace qact::metrics {
namespace {

constexpr int kBins = 15;

// Confidences of a binary prediction, and whether each was correct.
struct Outcomes {
  std::vector<double> confidence;
  std::vector<bool> correct;
};

Outcomes class_outcomes(const Predictions& p, int64_t k) {
  Outcomes out;
  for (int64_t i = 0; i < p.size(); ++i) {
    out.confidence.push_back(p.at(i, k));
    out.correct.push_back(p.labels[i] == k);
  }
  return out;
}

Outcomes top_outcomes(const Predictions& p) {
  Outcomes out;
  for (int64_t i = 0; i < p.size(); ++i) {
    const int64_t top = p.top(i);
    out.confidence.push_back(p.at(i, top));
    out.correct.push_back(p.labels[i] == top);
  }
  return out;
}

std::vector<double> sorted_values(const Outcomes& outcomes) {
  std::vector<double> values = outcomes.confidence;
  std::sort(values.begin(), values.end());
  return values;
}

// A bin ends half way between its last value and the first of the next bin; the end belongs to it.
std::vector<double> equal_mass_ends(const Outcomes& outcomes) {
  const std::vector<double> values = sorted_values(outcomes);
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<double> ends;
  int64_t stop = 0;
  for (int b = 0; b + 1 < kBins; ++b) {
    stop += n / kBins + (b < n % kBins);
    if (stop > 0 && stop < n) ends.push_back((values[stop - 1] + values[stop]) / 2);
  }
  ends.push_back(1.0);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

std::vector<double> per_value_ends(const Outcomes& outcomes) {
  std::vector<double> values = sorted_values(outcomes);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::vector<double> ends;
  for (size_t i = 0; i + 1 < values.size(); ++i) ends.push_back((values[i] + values[i + 1]) / 2);
  ends.push_back(1.0);
  return ends;
}

double squared_error(const Outcomes& outcomes, const std::vector<double>& ends) {
  struct Bin {
    double count = 0, confidence = 0, correct = 0;
  };
  std::vector<Bin> bins(ends.size());
  for (size_t i = 0; i < outcomes.confidence.size(); ++i) {
    const auto end = std::lower_bound(ends.begin(), ends.end(), outcomes.confidence[i]);
    Bin& bin = bins[std::min<size_t>(end - ends.begin(), ends.size() - 1)];
    bin.count += 1;
    bin.confidence += outcomes.confidence[i];
    bin.correct += outcomes.correct[i];
  }
  double sum = 0;
  for (const Bin& bin : bins) {
    if (bin.count < 2) continue;
    const double gap = (bin.confidence - bin.correct) / bin.count, y = bin.correct / bin.count;
    sum += bin.count * (gap * gap - y * (1 - y) / (bin.count - 1));
  }
  return std::max(0.0, sum / static_cast<double>(outcomes.confidence.size()));
}

bool few_values(const Outcomes& outcomes) {
  return per_value_ends(outcomes).size() < outcomes.confidence.size() / 4.0;
}

double squared_error(const Outcomes& outcomes, bool per_value) {
  return squared_error(outcomes, per_value ? per_value_ends(outcomes) : equal_mass_ends(outcomes));
}

// Adds the outcomes to the sums of each bin.
void add_to(std::vector<ReliabilityBin>& out, const Outcomes& outcomes) {
  const auto bins = static_cast<int>(out.size());
  for (size_t i = 0; i < outcomes.confidence.size(); ++i) {
    // Bins are closed above, as (0, 1/15]; 0 belongs to the first. Confidences are floats, so edges
    // are too: 0.2f, a little above 1/5, belongs to the bin that ends there.
    int b = 0;
    while (b + 1 < bins && outcomes.confidence[i] > static_cast<float>(b + 1) / bins) ++b;
    ReliabilityBin& bin = out[b];
    bin.count += 1;
    bin.confidence += outcomes.confidence[i];
    bin.accuracy += outcomes.correct[i];
  }
}

std::vector<ReliabilityBin> means(std::vector<ReliabilityBin> sums) {
  for (ReliabilityBin& bin : sums) {
    if (bin.count == 0) continue;
    bin.confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
  return sums;
}

}  // namespace

double calibration_error_marginal(const Predictions& p, Binning binning) {
  p.check("calibration_error_marginal");
  if (p.size() == 0) return 0;
  bool per_value = binning != Binning::equal_mass;
  if (binning == Binning::as_library) {
    for (int64_t k = 0; k < p.classes && per_value; ++k)
      per_value = few_values(class_outcomes(p, k));
  }
  double sum = 0;
  for (int64_t k = 0; k < p.classes; ++k) sum += squared_error(class_outcomes(p, k), per_value);
  return std::sqrt(sum / static_cast<double>(p.classes));
}

double calibration_error_top(const Predictions& p, Binning binning) {
  p.check("calibration_error_top");
  if (p.size() == 0) return 0;
  const Outcomes outcomes = top_outcomes(p);
  return std::sqrt(squared_error(
      outcomes,
      binning == Binning::per_value || (binning == Binning::as_library && few_values(outcomes))));
}

std::vector<ReliabilityBin> reliability(const Predictions& p, int bins) {
  p.check("reliability");
  std::vector<ReliabilityBin> sums(bins);
  add_to(sums, top_outcomes(p));
  return means(std::move(sums));
}

std::vector<ReliabilityBin> reliability_marginal(const Predictions& p, int bins) {
  p.check("reliability_marginal");
  std::vector<ReliabilityBin> sums(bins);
  for (int64_t k = 0; k < p.classes; ++k) add_to(sums, class_outcomes(p, k));
  return means(std::move(sums));
}

double ece(const Predictions& p) {
  p.check("ece");
  if (p.size() == 0) return 0;
  double sum = 0;
  for (const ReliabilityBin& bin : reliability(p, kBins)) {
    sum += static_cast<double>(bin.count) * std::abs(bin.confidence - bin.accuracy);
  }
  return sum / static_cast<double>(p.size());
}

}  // namespace qact::metrics
