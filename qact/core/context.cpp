#include "qact/core/context.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "qact/core/context_rows.h"
#include "qact/core/mutant.h"

namespace qact::core {
namespace {

int64_t total(ConstContextRow row) { return std::accumulate(row.begin(), row.end(), int64_t{0}); }

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw std::overflow_error("[context] more than 2^47 values in one bin");
  }
  return sum;
}

}  // namespace

void context_add(ConstContextRow a, ConstContextRow b, ContextRow sum) {
  for (int i = QACT_MUTANT("context_add_first"); i < kContextBins; ++i)
    sum[i] = checked_sum(a[i], b[i]);
}

int64_t context_units(double values) {
  if (!(values >= 0) || values >= 0x1.0p46) {
    throw std::invalid_argument("[context_blend] expected a weight in [0, 2^46), got " +
                                std::to_string(values));
  }
  return static_cast<int64_t>(std::llround(values * kContextUnit));
}

void context_blend(ConstContextRow a, double a_values, ConstContextRow b, double b_values,
                   ContextRow blended) {
  int64_t result[kContextBins];  // `blended` may be a or b
  blend_contexts(a.data(), context_units(a_values), b.data(), context_units(b_values), result);
  std::copy(std::begin(result), std::end(result), blended.begin());
}

void context_standard_normal(ContextRow row) {
  const double values = kMinContextCount * kContextUnit;
  int64_t before = 0;
  for (int b = 0; b < kContextBins; ++b) {
    const double share = 0.5 * std::erfc(-context_edge(b + 1) / std::sqrt(2.0));
    const int64_t upto = std::llround(values * share);
    row[b] = upto - before;
    before = upto;
  }
}

void context_quantiles(ConstContextRow row, const Quantile& quantile, double* quantiles) {
  context_row_quantiles(row.data(), quantile, quantiles);
}

double Context::size(int64_t channel) const {
  return static_cast<double>(total(row(channel))) / kContextUnit;
}

Context& Context::operator+=(const Context& other) {
  if (other.channels() != channels()) {
    throw std::invalid_argument("[context] expected " + std::to_string(channels()) +
                                " channels, got " + std::to_string(other.channels()));
  }
  for (int64_t c = 0; c < channels(); ++c) context_add(row(c), other.row(c), row(c));
  return *this;
}

Context Context::blend(const Context& a, double a_values, const Context& b, double b_values) {
  if (a.channels() != b.channels()) {
    throw std::invalid_argument("[context_blend] expected " + std::to_string(a.channels()) +
                                " channels, got " + std::to_string(b.channels()));
  }
  Context out(a.channels());
  for (int64_t c = 0; c < a.channels(); ++c) {
    context_blend(a.row(c), a_values, b.row(c), b_values, out.row(c));
  }
  return out;
}

}  // namespace qact::core
