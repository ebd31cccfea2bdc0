#include "qact/metrics/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace qact::metrics {
namespace {

std::vector<double> normalised_row(const Predictions& p, int64_t i) {
  std::vector<double> row(p.classes);
  double sum = 0;
  for (int64_t k = 0; k < p.classes; ++k) sum += row[k] = p.at(i, k);
  for (double& v : row) v = sum > 0 ? v / sum : 1.0 / static_cast<double>(p.classes);
  return row;
}

template <class Term>
double mean_over_rows(const Predictions& p, const char* metric, Term term) {
  p.check(metric);
  if (p.size() == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (int64_t i = 0; i < p.size(); ++i) sum += term(i);
  return sum / static_cast<double>(p.size());
}

}  // namespace

double accuracy(const Predictions& p) {
  return mean_over_rows(p, "accuracy",
                        [&](int64_t i) { return p.top(i) == p.labels[i] ? 1.0 : 0.0; });
}

double negative_log_likelihood(const Predictions& p) {
  return mean_over_rows(p, "negative_log_likelihood", [&](int64_t i) {
    const double smallest = std::numeric_limits<float>::min();
    return -std::log(std::max(normalised_row(p, i)[p.labels[i]], smallest));
  });
}

double brier(const Predictions& p) {
  return mean_over_rows(p, "brier", [&](int64_t i) {
    const std::vector<double> row = normalised_row(p, i);
    double sum = 0;
    for (int64_t k = 0; k < p.classes; ++k) {
      const double miss = row[k] - (k == p.labels[i] ? 1.0 : 0.0);
      sum += miss * miss;
    }
    return sum;
  });
}

}  // namespace qact::metrics
