#include "qact/run/evaluate_scores.h"

#include <torch/torch.h>

#include <algorithm>

#include "qact/core/random.h"
#include "qact/metrics/calibration.h"
#include "qact/metrics/retrieval.h"
#include "qact/metrics/scores.h"

namespace qact::run {

using metrics::Binning;
using metrics::Predictions;
using results::Row;

Interval bootstrap_accuracy(const Predictions& p, uint64_t seed) {
  constexpr int kDraws = 1000;
  const int64_t n = p.size();
  if (n == 0) return {};
  std::vector<uint8_t> right(n);
  for (int64_t i = 0; i < n; ++i) right[i] = p.top(i) == p.labels[i];
  core::Random random(seed, 0);
  std::vector<int64_t> sums(kDraws);
  for (int64_t& sum : sums) {
    for (int64_t i = 0; i < n; ++i) sum += right[static_cast<int64_t>(random.uniform() * n)];
  }
  std::sort(sums.begin(), sums.end());
  const auto share = [&](int draw) { return static_cast<double>(sums[draw]) / n; };
  return {share(kDraws / 40), share(kDraws - 1 - kDraws / 40)};
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

}  // namespace qact::run
