// Where a channel's bins lie, from what one pass over it tells.
#pragma once

#include <cmath>
#include <cstdint>

#include "qact/core/cpu/kernels.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

// Channels of at least this many values count into two histograms in turn; for shorter
// ones, adding the two up would cost more than it saves.
inline constexpr int64_t kLongChannel = 32768;

// z = (x - mean) * scale + shift; the plain operator's z is x itself.
struct Norm {
  double mean = 0;
  double scale = 1;
  double shift = 0;

  double z(double x) const { return (x - mean) * scale + shift; }
};

// What one pass over a channel tells.
template <class Real>
struct Summary {
  int64_t n = 0;
  double mean = 0;
  double variance = 0;  // biased
  Real low = 0;
  Real high = 0;

  bool finite() const { return std::isfinite(mean) && std::isfinite(variance); }
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

  double z_of_t(double t) const { return z_first + (t + map.offset) * z_width; }
  double centre(int32_t bin) const { return z_first + (bin + 0.5) * z_width; }
  double z_last() const { return z_first + bins * z_width; }

  // False where equal bins cannot serve: tails too long for the spread, or a bandwidth
  // too short for the range. The caller sorts instead.
  bool make(const Summary<Real>& summary, const Norm& norm, const Quantile& quantile);
};

}  // namespace qact::core::cpu
