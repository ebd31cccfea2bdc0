#include "qact/metrics/calibration.h"

#include <algorithm>
#include <cmath>

namespace qact::metrics {
namespace {

constexpr int kBins = 15;

// Confidences and whether each was right: the one-dimensional problem.
struct Judged {
  std::vector<double> confidence;
  std::vector<bool> right;
};

Judged judge_class(const Predictions& p, int64_t k) {
  Judged out;
  for (int64_t i = 0; i < p.size(); ++i) {
    out.confidence.push_back(p.at(i, k));
    out.right.push_back(p.labels[i] == k);
  }
  return out;
}

Judged judge_top(const Predictions& p) {
  Judged out;
  for (int64_t i = 0; i < p.size(); ++i) {
    const int64_t top = p.top(i);
    out.confidence.push_back(p.at(i, top));
    out.right.push_back(p.labels[i] == top);
  }
  return out;
}

std::vector<double> sorted_values(const Judged& judged) {
  std::vector<double> values = judged.confidence;
  std::sort(values.begin(), values.end());
  return values;
}

// A bin ends, inclusively, half way between its last value and the next one's first.
std::vector<double> equal_mass_ends(const Judged& judged) {
  const std::vector<double> values = sorted_values(judged);
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

std::vector<double> per_value_ends(const Judged& judged) {
  std::vector<double> values = sorted_values(judged);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::vector<double> ends;
  for (size_t i = 0; i + 1 < values.size(); ++i) ends.push_back((values[i] + values[i + 1]) / 2);
  ends.push_back(1.0);
  return ends;
}

double squared_error(const Judged& judged, const std::vector<double>& ends) {
  struct Bin {
    double count = 0, confidence = 0, right = 0;
  };
  std::vector<Bin> bins(ends.size());
  for (size_t i = 0; i < judged.confidence.size(); ++i) {
    const auto end = std::lower_bound(ends.begin(), ends.end(), judged.confidence[i]);
    Bin& bin = bins[std::min<size_t>(end - ends.begin(), ends.size() - 1)];
    bin.count += 1;
    bin.confidence += judged.confidence[i];
    bin.right += judged.right[i];
  }
  double sum = 0;
  for (const Bin& bin : bins) {
    if (bin.count < 2) continue;
    const double gap = (bin.confidence - bin.right) / bin.count, y = bin.right / bin.count;
    sum += bin.count * (gap * gap - y * (1 - y) / (bin.count - 1));
  }
  return std::max(0.0, sum / static_cast<double>(judged.confidence.size()));
}

bool few_values(const Judged& judged) {
  return per_value_ends(judged).size() < judged.confidence.size() / 4.0;
}

double squared_error(const Judged& judged, bool per_value) {
  return squared_error(judged, per_value ? per_value_ends(judged) : equal_mass_ends(judged));
}

// Sums over each bin.
void add_to(std::vector<ReliabilityBin>& out, const Judged& judged) {
  const auto bins = static_cast<int>(out.size());
  for (size_t i = 0; i < judged.confidence.size(); ++i) {
    // Bins are closed above, as (0, 1/15]; 0 belongs to the first. A confidence is a float:
    // 0.2f, a little above 1/5, belongs to the bin that ends there.
    int b = 0;
    while (b + 1 < bins && judged.confidence[i] > static_cast<float>(b + 1) / bins) ++b;
    ReliabilityBin& bin = out[b];
    bin.count += 1;
    bin.confidence += judged.confidence[i];
    bin.accuracy += judged.right[i];
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
    for (int64_t k = 0; k < p.classes && per_value; ++k) per_value = few_values(judge_class(p, k));
  }
  double sum = 0;
  for (int64_t k = 0; k < p.classes; ++k) sum += squared_error(judge_class(p, k), per_value);
  return std::sqrt(sum / static_cast<double>(p.classes));
}

double calibration_error_top(const Predictions& p, Binning binning) {
  p.check("calibration_error_top");
  if (p.size() == 0) return 0;
  const Judged judged = judge_top(p);
  return std::sqrt(squared_error(
      judged,
      binning == Binning::per_value || (binning == Binning::as_library && few_values(judged))));
}

std::vector<ReliabilityBin> reliability(const Predictions& p, int bins) {
  p.check("reliability");
  std::vector<ReliabilityBin> sums(bins);
  add_to(sums, judge_top(p));
  return means(std::move(sums));
}

std::vector<ReliabilityBin> reliability_marginal(const Predictions& p, int bins) {
  p.check("reliability_marginal");
  std::vector<ReliabilityBin> sums(bins);
  for (int64_t k = 0; k < p.classes; ++k) add_to(sums, judge_class(p, k));
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
