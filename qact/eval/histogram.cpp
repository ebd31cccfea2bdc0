#include "qact/eval/histogram.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "qact/core/context.h"

namespace qact::eval {

Histogram histogram(const torch::Tensor& values, double low, double high) {
  Histogram out{low, high, std::vector<double>(kHistogramBins), 0, 0};
  const float* const data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (data[i] < low) {
      out.below += 1;
    } else if (data[i] > high) {
      out.above += 1;
    } else {
      const int bin = static_cast<int>((data[i] - low) / (high - low) * kHistogramBins);
      out.counts[std::min(bin, kHistogramBins - 1)] += 1;
    }
  }
  return out;
}

Histogram context_histogram(const torch::Tensor& counts, double low, double high) {
  Histogram out{low, high, std::vector<double>(kHistogramBins), 0, 0};
  const double width = (high - low) / kHistogramBins;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    const double count = static_cast<double>(counts[bin].item<int64_t>()) / core::kContextUnit;
    const double from = core::context_edge(bin), to = core::context_edge(bin + 1);
    if (count == 0) continue;
    if (std::isinf(from) || std::isinf(to)) {
      (std::isinf(from) ? out.below : out.above) += count;
      continue;
    }
    const auto share = [&](double left, double right) {
      return count * std::max(0.0, std::min(to, right) - std::max(from, left)) / (to - from);
    };
    out.below += share(from, low);
    out.above += share(high, to);
    for (int b = 0; b < kHistogramBins; ++b) {
      out.counts[b] += share(low + b * width, low + (b + 1) * width);
    }
  }
  return out;
}

std::pair<double, double> context_range(const torch::Tensor& counts) {
  const int64_t* const data = counts.data_ptr<int64_t>();
  const double total = counts.sum().item<double>();
  int first = core::kContextBins / 2, last = first - 1;
  double before = 0;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    const double with = before + static_cast<double>(data[bin]);
    if (with > 0.001 * total && before < 0.999 * total) {
      if (last < first) first = bin;
      last = bin;
    }
    before = with;
  }
  // The outermost bins reach to infinity.
  first = std::clamp(first, 1, core::kContextBins - 2);
  last = std::clamp(last, first, core::kContextBins - 2);
  return {core::context_edge(first), core::context_edge(last + 1)};
}

}  // namespace qact::eval
