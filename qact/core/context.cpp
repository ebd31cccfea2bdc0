#include "qact/core/context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

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

// FNV-1a.
uint64_t checksum(std::span<const char> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

void put(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t get(std::span<const char> bytes, size_t at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

constexpr char kMagic[8] = {'q', 'a', 'c', 't', 'c', 't', 'x', '1'};

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

std::string Context::serialise() const {
  std::string out(kMagic, sizeof(kMagic));
  put(out, static_cast<uint64_t>(channels()));
  put(out, kContextBins);
  for (const int64_t count : counts_) put(out, static_cast<uint64_t>(count));
  put(out, checksum(out));
  return out;
}

Context Context::parse(std::span<const char> bytes) {
  constexpr size_t kHeader = 24;
  const auto fail = [](const std::string& what) -> Context {
    throw std::invalid_argument("[context] " + what);
  };
  if (bytes.size() < kHeader + 8 || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return fail("expected a saved context, got " + std::to_string(bytes.size()) +
                " bytes that do not start as one");
  }
  const uint64_t channels = get(bytes, 8), bins = get(bytes, 16);
  if (bins != kContextBins) {
    return fail("expected " + std::to_string(kContextBins) + " bins, got " + std::to_string(bins));
  }
  const uint64_t most = bytes.size() / (8 * kContextBins);
  const uint64_t expected = kHeader + 8 + 8 * kContextBins * std::min(channels, most + 1);
  if (bytes.size() != expected) {
    return fail("expected " + std::to_string(channels) + " channels of " +
                std::to_string(8 * kContextBins) + " bytes, got " + std::to_string(bytes.size()) +
                " bytes in all");
  }
  if (get(bytes, bytes.size() - 8) != checksum(bytes.first(bytes.size() - 8))) {
    return fail("the checksum does not match: the bytes are damaged");
  }
  Context context(static_cast<int64_t>(channels));
  for (size_t i = 0; i < context.counts_.size(); ++i) {
    context.counts_[i] = static_cast<int64_t>(get(bytes, kHeader + 8 * i));
    if (context.counts_[i] < 0) return fail("a count is negative");
  }
  return context;
}

}  // namespace qact::core
