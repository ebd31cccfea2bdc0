// Histograms of values, and of running contexts.
#pragma once

#include <torch/types.h>

#include <utility>
#include <vector>

namespace qact::eval {

// Bins of equal width from low to high.
struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;
  double below = 0, above = 0;  // values outside of them
};
inline constexpr int kHistogramBins = 50;

Histogram histogram(const torch::Tensor& values, double low, double high);
// Of a neuron's running context: the counts of its 256 bins (core/context.h), each spread evenly
// over its bin.
Histogram context_histogram(const torch::Tensor& counts, double low, double high);

// The edges of the context's bins between which all but the lowest and the highest thousandth of
// its values lie.
std::pair<double, double> context_range(const torch::Tensor& counts);

}  // namespace qact::eval
