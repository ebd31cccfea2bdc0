#include "qact/eval/scores.h"

#include <torch/torch.h>

#include <cmath>

#include "qact/metrics/calibration.h"
#include "qact/metrics/retrieval.h"
#include "qact/metrics/scores.h"

namespace qact::eval {

using metrics::Binning;
using metrics::Predictions;
using results::Row;

// With k of n predictions correct, a sample drawn with replacement has Binomial(n, k / n) correct
// ones: its quantiles need no draws. P(j + 1) / P(j) = (n - j) / (j + 1) k / (n - k).
Interval bootstrap_accuracy(const Predictions& p) {
  const int64_t n = p.size();
  int64_t right = 0;
  for (int64_t i = 0; i < n; ++i) right += p.top(i) == p.labels[i];
  if (right == 0) return {0, 0};
  if (right == n) return {1, 1};
  const auto count = static_cast<double>(n), odds = right / (count - right);
  const auto quantile = [&](double share) {
    double log_chance = count * std::log1p(-right / count), sum = std::exp(log_chance);
    int64_t j = 0;
    for (; sum < share && j < n; ++j) {
      log_chance += std::log((count - j) / (j + 1) * odds);
      sum += std::exp(log_chance);
    }
    return j / count;
  };
  return {quantile(0.025), quantile(0.975)};
}

Row probability_scores(const Predictions& p) {
  const Interval interval = bootstrap_accuracy(p);
  return {{"accuracy", metrics::accuracy(p)},
          {"accuracy_low", interval.low},
          {"accuracy_high", interval.high},
          {"ece_marginal", metrics::calibration_error_marginal(p)},
          {"ece_top", metrics::calibration_error_top(p)},
          {"ece_marginal_library", metrics::calibration_error_marginal(p, Binning::as_library)},
          {"ece_top_library", metrics::calibration_error_top(p, Binning::as_library)},
          {"ece_plain", metrics::ece(p)},
          {"nll", metrics::negative_log_likelihood(p)},
          {"brier", metrics::brier(p)}};
}

Row retrieval_scores(const torch::Tensor& embedding, const std::vector<int64_t>& labels) {
  const torch::Tensor of = torch::tensor(labels, torch::kLong).to(embedding.device());
  const metrics::Retrieval found = metrics::map_at_k(embedding, of, 100);
  return {{"map100", found.map}, {"map100_retrieved", found.map_retrieved}};
}

Row reliability_bins(const Predictions& p, const std::string& which) {
  Row bins = Row::array();
  for (const auto& bin :
       which == "top" ? metrics::reliability(p) : metrics::reliability_marginal(p)) {
    Row row = {{"confidence", nullptr}, {"accuracy", nullptr}, {"count", bin.count}};
    if (bin.count > 0) {
      row["confidence"] = bin.confidence;
      row["accuracy"] = bin.accuracy;
    }
    bins.push_back(row);
  }
  return bins;
}

}  // namespace qact::eval
