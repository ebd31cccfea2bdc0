// Where a channel's bins lie, from what one pass over it tells. Every device has the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "qact/core/host_device.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

// Channels of at least this many values get more bins, and on CPU count into two histograms
// in turn; for shorter ones, adding the two up would cost more than it saves.
inline constexpr int64_t kLongChannel = 32768;

// Small contexts need many bins too: what makes a bin heavy there is chance.
QACT_HD inline int32_t bins_for(int64_t n) { return n < kLongChannel ? 2048 : 4096; }

// z = (x - mean) * scale + shift; the plain operator's z is x itself.
struct Norm {
  double mean = 0;
  double scale = 1;
  double shift = 0;

  QACT_HD double z(double x) const { return (x - mean) * scale + shift; }
  QACT_HD double x(double z) const { return mean + (z - shift) / scale; }
};

// What one pass over a channel tells.
template <class Real>
struct Summary {
  int64_t n = 0;
  double mean = 0;
  double variance = 0;  // biased
  Real low = 0;
  Real high = 0;

  // Differences of values are taken in Real, and have to be finite too.
  QACT_HD bool finite() const {
    return std::isfinite(mean) && std::isfinite(variance) && std::isfinite(high - low);
  }
};

// t(x) = (x - origin) * scale; bin(x) = floor(t kept within [first, last]) + offset. Both
// grow with z, so scale carries the sign of the norm's weight.
template <class Real>
struct BinMap {
  Real origin = 0;
  Real scale = 0;
  Real first = 0;
  Real last = 0;
  int32_t offset = 0;

  QACT_HD Real t(Real x) const {
    const Real at = (x - origin) * scale;
    return at < first ? first : (at > last ? last : at);
  }
};

// Bins are equally wide in x and ascend with z: bin b starts at z_first + b * z_width.
// z = 0 is an edge wherever it lies inside the range, so that signs are told exactly.
template <class Real>
struct BinPlan {
  BinMap<Real> map;
  int32_t bins = 0;
  int32_t split = 0;  // the first bin of z >= 0
  double z_first = 0;
  double z_width = 0;

  QACT_HD double z_of_t(double t) const { return z_first + (t + map.offset) * z_width; }
  QACT_HD double centre(int32_t bin) const { return z_first + (bin + 0.5) * z_width; }
  QACT_HD double z_last() const { return z_first + bins * z_width; }

  // False where `most` equal bins cannot serve: tails too long for the spread, or a
  // bandwidth too short for the range. The caller ranks the values instead.
  QACT_HD bool make(const Summary<Real>& summary, const Norm& norm, double bandwidth,
                    double most = kMostBins);

  static constexpr double kMostBins = 16384;
};

// The first number with z >= 0 in the order of z, given the nearest to z = 0: far from 0,
// where neighbours lie wide apart, many values may equal it.
template <class Real>
QACT_HD inline Real first_not_negative(const Norm& norm, Real nearest) {
  constexpr Real kFar = std::numeric_limits<Real>::max();
  if (norm.z(nearest) >= 0 || QACT_MUTANT("bins_zero_side")) return nearest;
  return std::nextafter(nearest, norm.scale > 0 ? kFar : -kFar);
}

template <class Real>
QACT_HD inline bool BinPlan<Real>::make(const Summary<Real>& s, const Norm& norm, double bandwidth,
                                        double most) {
  constexpr double kBinsPerBandwidth = 16;
  constexpr double kLongestRange = 32;  // in standard deviations
  *this = {};
  map.last = std::nextafter(Real{1}, Real{0});
  if (norm.scale == 0 || s.low == s.high) {  // one value
    map.origin = s.low;
    bins = 1;
    z_first = norm.scale == 0 ? norm.shift : norm.z(s.low);
    split = z_first >= 0 ? 0 : 1;
    return true;
  }
  const double range = static_cast<double>(s.high) - static_cast<double>(s.low);
  const double resolving = range * std::abs(norm.scale) * kBinsPerBandwidth / bandwidth;
  const double least = bins_for(s.n),
               wanted = std::ceil(resolving) > least ? std::ceil(resolving) : least;
  if (!(wanted <= most) || !(range * range <= kLongestRange * kLongestRange * s.variance)) {
    return false;
  }
  // What is derived from bins is in float.
  constexpr double kNarrowest = 1e-30;
  if (!(range * std::abs(norm.scale) > kNarrowest * wanted)) return false;

  const double zero = norm.mean - norm.shift / norm.scale;  // the x of z = 0
  const bool zero_inside = s.low <= zero && zero <= s.high;
  const Real lowest = norm.scale > 0 ? s.low : s.high;  // in the order of z
  const Real highest = norm.scale > 0 ? s.high : s.low;
  map.origin = zero_inside ? first_not_negative(norm, static_cast<Real>(zero)) : lowest;
  map.scale = static_cast<Real>((norm.scale > 0 ? 1 : -1) * (wanted - 1) / range);
  if (!std::isfinite(map.scale) || std::abs(map.scale) < std::numeric_limits<Real>::min()) {
    return false;
  }
  map.first = std::floor((lowest - map.origin) * map.scale);
  const Real last = std::floor((highest - map.origin) * map.scale);
  map.last = std::nextafter(last + 1, map.first);
  map.offset = -static_cast<int32_t>(map.first);
  bins = static_cast<int32_t>(last - map.first) + 1;
  z_width = norm.scale / static_cast<double>(map.scale);
  if (zero_inside) {
    z_first = -map.offset * z_width;
    split = map.offset < bins ? map.offset + QACT_MUTANT("bins_split") : bins;
  } else {
    z_first = norm.z(lowest);
    split = z_first >= 0 ? 0 : bins;
  }
  return true;
}

}  // namespace qact::core
