#include "qact/core/cpu/binned.h"

#include <algorithm>
#include <array>
#include <limits>

#include "qact/core/context.h"
#include "qact/core/sort.h"

namespace qact::core::cpu {
namespace {

constexpr int64_t kLongChannel = 32768;

// Small contexts need many bins too: what makes a bin heavy there is chance.
double bins_for(int64_t n) { return n < kLongChannel ? 2048 : 4096; }

constexpr double kBinsPerBandwidth = 16;
constexpr double kMostBins = 16384;
constexpr double kLongestRange = 32;  // in standard deviations

// Room for the table kernels, which work on whole vectors.
size_t padded(size_t n) { return (n + 31) / 16 * 16; }

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

template <class Real>
void BinnedChannel<Real>::clear_histogram(int64_t n) {
  count_.assign(padded(plan.bins), 0);
  odd_.assign(n < kLongChannel ? 0 : padded(plan.bins), 0);
}

template <class Real>
void BinnedChannel<Real>::solve(const TensorKernels<Real>& kernels, const TableKernels& tables,
                                const Quantile& quantile, const EachStrip<Real>& each_strip) {
  before_.resize(padded(plan.bins + 1));
  level_.resize(kFront + padded(plan.bins));
  exceptions_.clear();
  tables.cumulate(count_.data(), odd(), plan.bins, before_.data());
  levels_ = quantile.levels;
  bound_ = quantile.bound;
  negatives_ = before_[plan.split];
  rule_ = LevelRule(quantile, negatives_, before_[plan.bins] - negatives_);
  const bool heavy = settle_light_bins(tables, quantile);
  count_levels(tables);
  if (heavy) settle_heavy_bins(kernels, each_strip);
}

// Ranks count -c or c once it lies below, so each side falls into two runs of bins.
// Returns whether any bin is heavier than half a level.
template <class Real>
bool BinnedChannel<Real>::settle_light_bins(const TableKernels& tables,
                                            const Quantile& quantile) {
  bool heavy = false;
  for (const bool positive : {false, true}) {
    const int32_t begin = positive ? plan.split : 0, end = positive ? plan.bins : plan.split;
    const double anchor = positive ? bound_ : -bound_;
    const double past = plan.z_width > 0
                            ? std::floor((anchor - plan.z_first) / plan.z_width) + 1
                            : (anchor <= plan.z_first ? begin : end);
    const int32_t middle = static_cast<int32_t>(std::clamp<double>(past, begin, end));
    BinLevels rule;
    rule.base = positive ? static_cast<float>((levels_ + 1) * (1 - quantile.positive_share)) : 0;
    rule.gain = static_cast<float>((levels_ + 1) * rule_.weight(positive) / 2);
    rule.cap = levels_;
    rule.limit = static_cast<int32_t>(std::min(half_level(positive), 1e9));
    const auto run = [&](int32_t from, int32_t to, int anchors) {
      if (from == to) return;
      rule.rank = anchors - (positive ? negatives_ : 0);
      heavy |= tables.bin_levels(count_.data() + from, before_.data() + from, to - from, rule,
                                 level_.data() + kFront + from);
    };
    run(begin, middle, 0);
    run(middle, end, 1);
  }
  return heavy;
}

template <class Real>
void BinnedChannel<Real>::count_levels(const TableKernels& tables) {
  first_bin_.assign(padded(levels_ + 2), -1);
  level_[kFront - 1] = -1;
  tables.level_starts(levels(), plan.bins, first_bin_.data());
  members_.resize(levels_ + 1);
  int32_t end = first_bin_[levels_ + 1] = plan.bins;
  for (int k = levels_; k >= 0; --k) {
    if (first_bin_[k] < 0) first_bin_[k] = end;
    members_[k] = before_[end] - before_[first_bin_[k]];
    end = first_bin_[k];
  }
}

template <class Real>
int BinnedChannel<Real>::level_in(int32_t bin, Real t, int64_t rank_in_bin) const {
  const bool positive = bin >= plan.split;
  const int64_t below = before_[bin] - (positive ? negatives_ : 0);
  const bool past_anchor = plan.z_of_t(t) >= (positive ? bound_ : -bound_);
  return rule_.level(positive, below + rank_in_bin + past_anchor);
}

template <class Real>
void BinnedChannel<Real>::settle_heavy_bins(const TensorKernels<Real>& kernels,
                                            const EachStrip<Real>& each_strip) {
  mark_heavy_bins();
  int64_t values = 0;
  for (const HeavyBin& heavy : heavy_) values += count_[heavy.bin];
  // Much mass in heavy bins means ties more often than not: tell those apart first.
  if (values > before_[plan.bins] / 8) settle_single_values(kernels, each_strip);
  if (heavy_.empty()) return;

  flagged_.clear();
  std::vector<int32_t> place, mark;
  std::vector<Real> t;
  int64_t start = 0;
  each_strip([&](const Real* x, int64_t n) {
    place.resize(std::max<size_t>(place.size(), n));
    mark.resize(place.size());
    t.resize(place.size());
    const int64_t found = kernels.marked_collect(x, n, plan.map, marks_.data(), place.data(),
                                                 t.data(), mark.data());
    for (int64_t i = 0; i < found; ++i) flagged_.push_back({start + place[i], t[i], mark[i]});
    start += n;
  });

  // Each bin's values side by side, sorted and ranked.
  std::vector<int32_t> next(heavy_.size() + 1, 0);
  for (size_t h = 0; h < heavy_.size(); ++h) {
    next[h + 1] = next[h] + static_cast<int32_t>(count_[heavy_[h].bin]);
  }
  std::vector<Real> sorted(flagged_.size());
  std::vector<int32_t> at(next.begin(), next.end());
  for (const Flagged& value : flagged_) sorted[at[value.heavy]++] = value.t;
  thresholds_.clear();
  for (size_t h = 0; h < heavy_.size(); ++h) {
    rank(heavy_[h], sorted.data() + next[h], next[h + 1] - next[h]);
  }
  for (const Flagged& value : flagged_) {
    const HeavyBin& heavy = heavy_[value.heavy];
    const auto begin = thresholds_.begin() + heavy.thresholds_begin;
    const auto end = thresholds_.begin() + heavy.thresholds_end;
    const auto passed = std::upper_bound(begin, end, value.t) - begin;
    exceptions_.push_back({value.position, heavy.base + static_cast<int32_t>(passed)});
  }
}

template <class Real>
void BinnedChannel<Real>::mark_heavy_bins() {
  heavy_.clear();
  marks_.assign(padded(plan.bins), -1);
  const double limit[2] = {half_level(false), half_level(true)};
  for (int32_t b = 0; b < plan.bins; ++b) {
    if (count_[b] <= limit[b >= plan.split]) continue;
    marks_[b] = static_cast<int32_t>(heavy_.size());
    heavy_.push_back({b, 0, 0, 0});
  }
}

template <class Real>
void BinnedChannel<Real>::settle_single_values(const TensorKernels<Real>& kernels,
                                               const EachStrip<Real>& each_strip) {
  std::vector<Real> low(heavy_.size(), std::numeric_limits<Real>::infinity());
  std::vector<Real> high(heavy_.size(), -std::numeric_limits<Real>::infinity());
  each_strip([&](const Real* x, int64_t n) {
    kernels.marked_range(x, n, plan.map, marks_.data(), low.data(), high.data());
  });
  std::vector<HeavyBin> rest;
  for (size_t h = 0; h < heavy_.size(); ++h) {
    const int32_t bin = heavy_[h].bin;
    if (low[h] < high[h]) {
      marks_[bin] = static_cast<int32_t>(rest.size());
      rest.push_back(heavy_[h]);
      continue;
    }
    marks_[bin] = -1;
    int32_t& level = level_[kFront + bin];
    members_[level] -= count_[bin];
    level = level_in(bin, low[h], count_[bin]);
    members_[level] += count_[bin];
  }
  heavy_ = std::move(rest);
}

template <class Real>
void BinnedChannel<Real>::rank(HeavyBin& heavy, Real* values, int32_t n) {
  sort_values(values, n, scratch_);
  members_[levels()[heavy.bin]] -= n;
  heavy.thresholds_begin = static_cast<int32_t>(thresholds_.size());
  for (int32_t i = 0; i < n;) {
    int32_t end = i + 1;
    while (end < n && values[end] == values[i]) ++end;
    const int32_t level = level_in(heavy.bin, values[i], end);
    if (i == 0) heavy.base = level;
    thresholds_.resize(heavy.thresholds_begin + level - heavy.base, values[i]);
    members_[level] += end - i;
    i = end;
  }
  heavy.thresholds_end = static_cast<int32_t>(thresholds_.size());
}

// The number of values below each z, as whole_ + part_.
template <class Real>
void BinnedChannel<Real>::cumulative_counts(const TableKernels& tables, const float* z,
                                            int32_t n) {
  whole_.resize(padded(n));
  part_.resize(padded(n));
  if (plan.z_width <= 0) {  // all values are one
    for (int32_t i = 0; i < n; ++i) {
      whole_[i] = z[i] > plan.z_first ? before_[1] : 0;
      part_[i] = 0;
    }
    return;
  }
  count_[plan.bins] = 0;
  tables.cumulative_at(before_.data(), count_.data(), plan.bins, z,
                       static_cast<float>(-plan.z_first / plan.z_width),
                       static_cast<float>(1 / plan.z_width), n, whole_.data(), part_.data());
}

template <class Real>
void BinnedChannel<Real>::estimate_density(const TableKernels& tables, const Quantile& quantile) {
  density_.reset(plan.z_first, plan.z_last(), quantile.bandwidth);
  const std::vector<float>& edges = density_.cell_edges();
  const int32_t cells = static_cast<int32_t>(edges.size()) - 1;
  cumulative_counts(tables, edges.data(), cells + 1);
  // Differences first: the counts are large, and a cell's share of them is small.
  const double weight[2] = {rule_.weight(false), rule_.weight(true)};
  for (int32_t i = 0; i < cells; ++i) {
    double below[2] = {static_cast<double>(whole_[i]) + part_[i],
                       static_cast<double>(whole_[i + 1]) + part_[i + 1]};
    double mass = 0;
    if (below[0] < negatives_) mass += weight[0] * (std::min<double>(below[1], negatives_) - below[0]);
    if (below[1] > negatives_) mass += weight[1] * (below[1] - std::max<double>(below[0], negatives_));
    density_.set_cell(i, static_cast<float>(mass));
  }
  density_.add(-quantile.bound, weight[0]);
  density_.add(quantile.bound, weight[1]);
  density_.finish(tables);
}

// At the middle of a narrow level; over a few runs of bins in a wide one.
template <class Real>
void BinnedChannel<Real>::mean_density(const TableKernels& tables,
                                       std::vector<float>& mean) const {
  constexpr int32_t kRuns = 4;
  mean.resize(padded(levels_ + 1));
  const GridLine line = density_.along(plan.z_first, plan.z_width);
  tables.grid_between(line, first_bin_.data(), levels_ + 1, mean.data());
  const double narrow = density_.spacing() / std::max(plan.z_width, 1e-300);
  for (int k = 0; k <= levels_; ++k) {
    const int32_t begin = first_bin_[k], end = first_bin_[k + 1];
    const int32_t total = before_[end] - before_[begin];
    if (end - begin <= narrow || total == 0) continue;
    const int32_t step = (end - begin + kRuns - 1) / kRuns;
    float sum = 0;
    for (int32_t b = begin; b < end; b += step) {
      const int32_t stop = std::min(b + step, end);
      sum += static_cast<float>(before_[stop] - before_[b]) *
             line.at(0.5f * static_cast<float>(b + stop));
    }
    mean[k] = sum / static_cast<float>(total);
  }
}

template <class Real>
void BinnedChannel<Real>::write_context(const TableKernels& tables, int64_t* context) {
  static const auto edges = [] {
    std::array<float, kContextBins + 16> out{};
    for (int b = 0; b < kContextBins; ++b) out[b] = context_edge(b + 1);
    return out;
  }();
  cumulative_counts(tables, edges.data(), kContextBins);
  int64_t before = 0;
  for (int bin = 0; bin < kContextBins; ++bin) {
    const int64_t after = whole_[bin] + static_cast<int64_t>(part_[bin] + 0.5f);
    context[bin] = (after - before) * kContextUnit;
    before = after;
  }
}

template struct BinPlan<float>;
template struct BinPlan<double>;
template class BinnedChannel<float>;
template class BinnedChannel<double>;

}  // namespace qact::core::cpu
