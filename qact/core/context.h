// The context as a value: a histogram over bins that never depend on the data, so that
// contexts of different batches, runs and machines add up exactly.
//
// Bins follow the float's own bits: eight to the octave of |z| from 2^-8 to 224, one
// below and one above, for either sign; 0 is an edge. Counts are fixed point, in units
// of 2^-16 values, so that blending and decay are integer arithmetic too. A channel
// takes 2 KiB. NaN is never counted.
//
// A bin's values count as spread evenly over it, which is wrong for ties, such as a constant
// background: all of them have the level above the last of them, wherever they lie in their bin.
// So a tie that is worth a level or so is counted below its own bin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "qact/core/host_device.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

inline constexpr int kContextBins = 256;
inline constexpr int64_t kContextUnit = 1 << 16;  // one value

// A running context has an effective sample count of at least this, however small the batches
// that feed it: against fewer, the appended bounds would decide the outer quantiles.
inline constexpr double kMinContextCount = 1024;

// That of a context after a batch of so many values. The upper end is what fixed point can hold;
// nothing weighs against it.
inline double effective_count(double values) {
  return std::clamp(values, kMinContextCount, 0x1.0p40);
}

using ContextRow = std::span<int64_t, kContextBins>;
using ConstContextRow = std::span<const int64_t, kContextBins>;

// The smallest |z| of the j-th bin away from 0, j in 0..128.
QACT_HD inline float context_magnitude(int j) {
  constexpr int kFirst = (127 - 8) * 8;  // exponent and three bits of 2^-8
  if (j == 0) return 0.0f;
  if (j == kContextBins / 2) return std::numeric_limits<float>::infinity();
  return std::bit_cast<float>(static_cast<uint32_t>(kFirst + j - 1) << 20);
}

// The lower edge of a bin; of kContextBins, the upper edge of the last.
QACT_HD inline float context_edge(int bin) {
  constexpr int kHalf = kContextBins / 2;
  return bin < kHalf ? -context_magnitude(kHalf - bin) : context_magnitude(bin - kHalf);
}

// z must not be NaN.
QACT_HD inline int context_bin(float z) {
  constexpr int kHalf = kContextBins / 2;
  constexpr int kFirst = (127 - 8) * 8;
  const uint32_t bits = std::bit_cast<uint32_t>(z);
  const int j = static_cast<int>((bits & 0x7fffffff) >> 20) - kFirst + 1;
  const int magnitude = j < 0 ? 0 : (j > kHalf - 1 ? kHalf - 1 : j);
  return z >= 0 && !(QACT_MUTANT("context_bin_zero") && z == 0) ? kHalf + magnitude
                                                                : kHalf - 1 - magnitude;
}

// Whether `count` equal values are a tie among as many values of their sign.
QACT_HD inline bool context_is_tie(int64_t count, int64_t of_their_sign) {
  return count >= 8 && 64 * count >= of_their_sign && !QACT_MUTANT("context_ties_missed");
}

// The bin that a tie at z is counted in: the first that ends 1/32 or more below z, and 1/32 of |z|,
// without a change of sign. So much z may move from batch to batch, since statistics do.
QACT_HD inline int context_tie_bin(float z) {
  const float magnitude = z < 0 ? -z : z;
  if (magnitude > std::numeric_limits<float>::max()) return context_bin(z);
  const float lower = z - ((magnitude > 1 ? magnitude : 1.0f) / 32);
  const int first = z < 0 ? 0 : kContextBins / 2, below = context_bin(lower) - 1;
  return below < first ? first : below;
}

// a + b, exactly. Throws std::overflow_error past 2^47 values.
void context_add(ConstContextRow a, ConstContextRow b, ContextRow sum);

// Throws std::invalid_argument for values that fixed point cannot hold.
int64_t context_units(double values);

// a scaled to a total of a_values plus b scaled to b_values; the total is exact to
// 2^-16 of a value. An empty context cedes its weight to the other.
void context_blend(ConstContextRow a, double a_values, ConstContextRow b, double b_values,
                   ContextRow blended);

// What an untrained layer is given, as BatchNorm starts from mean 0 and variance 1.
void context_standard_normal(ContextRow row);

// q_1..q_levels of the weighted context, values spread evenly over each bin, and c over the
// gap below it. The first bin from 0 on counts as 0.
void context_quantiles(ConstContextRow row, const Quantile& quantile, double* quantiles);

// The contexts of a layer, as one value.
class Context {
 public:
  Context() = default;
  explicit Context(int64_t channels) : counts_(channels * kContextBins) {}

  int64_t channels() const { return static_cast<int64_t>(counts_.size()) / kContextBins; }
  int64_t* data() { return counts_.data(); }
  const int64_t* data() const { return counts_.data(); }
  ContextRow row(int64_t channel) {
    return ContextRow(counts_.data() + channel * kContextBins, kContextBins);
  }
  ConstContextRow row(int64_t channel) const {
    return ConstContextRow(counts_.data() + channel * kContextBins, kContextBins);
  }
  // The number of values in a channel's context.
  double size(int64_t channel) const;

  Context& operator+=(const Context& other);
  bool operator==(const Context& other) const = default;

  static Context blend(const Context& a, double a_values, const Context& b, double b_values);

 private:
  std::vector<int64_t> counts_;
};

}  // namespace qact::core
