#include "qact/core/cpu/bin_plan.h"

#include <algorithm>

namespace qact::core::cpu {
namespace {

// Small contexts need many bins too: what makes a bin heavy there is chance.
double bins_for(int64_t n) { return n < kLongChannel ? 2048 : 4096; }

constexpr double kBinsPerBandwidth = 16;
constexpr double kMostBins = 16384;
constexpr double kLongestRange = 32;  // in standard deviations

}  // namespace

template <class Real>
bool BinPlan<Real>::make(const Summary<Real>& s, const Norm& norm, const Quantile& quantile) {
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
  const double resolving = range * std::abs(norm.scale) * kBinsPerBandwidth / quantile.bandwidth;
  const double wanted = std::max(bins_for(s.n), std::ceil(resolving));
  if (!(wanted <= kMostBins) || !(range <= kLongestRange * std::sqrt(s.variance))) return false;

  const double zero = norm.mean - norm.shift / norm.scale;  // the x of z = 0
  const bool zero_inside = s.low <= zero && zero <= s.high;
  const Real lowest = norm.scale > 0 ? s.low : s.high;  // in the order of z
  const Real highest = norm.scale > 0 ? s.high : s.low;
  map.origin = zero_inside ? static_cast<Real>(zero) : lowest;
  map.scale = static_cast<Real>((norm.scale > 0 ? 1 : -1) * (wanted - 1) / range);
  if (!std::isnormal(map.scale)) return false;
  map.first = std::floor((lowest - map.origin) * map.scale);
  const Real last = std::floor((highest - map.origin) * map.scale);
  map.last = std::nextafter(last + 1, map.first);
  map.offset = -static_cast<int32_t>(map.first);
  bins = static_cast<int32_t>(last - map.first) + 1;
  z_width = norm.scale / static_cast<double>(map.scale);
  if (zero_inside) {
    z_first = -map.offset * z_width;
    split = std::min(map.offset, bins);
  } else {
    z_first = norm.z(lowest);
    split = z_first >= 0 ? 0 : bins;
  }
  return true;
}

template struct BinPlan<float>;
template struct BinPlan<double>;

}  // namespace qact::core::cpu
