#include "qact/metrics/corruption_error.h"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace qact::metrics {
namespace {

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double mean_corruption_error(const std::vector<std::vector<double>>& error,
                             std::span<const double> reference) {
  return relative_corruption_error(error, 0, reference, 0);
}

double relative_corruption_error(const std::vector<std::vector<double>>& error, double clean,
                                 std::span<const double> reference, double reference_clean) {
  if (error.size() != reference.size()) {
    throw std::invalid_argument("[mean_corruption_error] expected a reference error for each of " +
                                std::to_string(error.size()) + " corruptions, got " +
                                std::to_string(reference.size()));
  }
  std::vector<double> ratios;
  for (size_t d = 0; d < error.size(); ++d) {
    ratios.push_back((mean(error[d]) - clean) / (reference[d] - reference_clean));
  }
  return mean(ratios);
}

}  // namespace qact::metrics
