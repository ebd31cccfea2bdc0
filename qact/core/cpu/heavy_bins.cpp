#include "qact/core/cpu/heavy_bins.h"

#include <algorithm>
#include <limits>

#include "qact/core/sort.h"

namespace qact::core::cpu {

template <class Real>
int HeavyBins<Real>::Work::level(int32_t bin, Real t, int64_t rank_in_bin) const {
  const bool positive = bin >= bins.plan.split;
  const int64_t below = bins.before[bin] - (positive ? bins.negatives : 0);
  const bool past_anchor = bins.plan.z_of_t(t) >= (positive ? bound : -bound);
  return rule.level(positive, below + rank_in_bin + past_anchor);
}

template <class Real>
const std::vector<Exception>& HeavyBins<Real>::settle(const Work& work, int32_t* levels) {
  exceptions_.clear();
  const int64_t values = mark(work);
  // Much mass in heavy bins means ties more often than not: tell those apart first.
  if (values > work.bins.total() / 8) settle_single_values(work, levels);
  if (heavy_.empty()) return exceptions_;
  collect(work);
  rank_each(work);
  for (const Flagged& value : flagged_) {
    const HeavyBin& heavy = heavy_[value.heavy];
    const auto begin = thresholds_.begin() + heavy.thresholds_begin;
    const auto end = thresholds_.begin() + heavy.thresholds_end;
    const auto passed = std::upper_bound(begin, end, value.t) - begin;
    exceptions_.push_back({value.position, heavy.base + static_cast<int32_t>(passed)});
  }
  for (const HeavyBin& heavy : heavy_) marks_[heavy.bin] = -1;
  return exceptions_;
}

// Returns how many values lie in heavy bins.
template <class Real>
int64_t HeavyBins<Real>::mark(const Work& work) {
  const BinPlan<Real>& plan = work.bins.plan;
  heavy_.clear();
  found_.resize(plan.bins);
  marks_.resize(std::max<size_t>(marks_.size(), plan.bins), -1);
  int64_t values = 0;
  for (const bool positive : {false, true}) {
    const int32_t begin = positive ? plan.split : 0, end = positive ? plan.bins : plan.split;
    const int32_t limit = work.rule.half_level(positive);
    const int32_t found =
        work.tables.heavier(work.bins.count.data() + begin, end - begin, limit, found_.data());
    for (int32_t i = 0; i < found; ++i) {
      const int32_t bin = begin + found_[i];
      marks_[bin] = static_cast<int32_t>(heavy_.size());
      heavy_.push_back({bin, 0, 0, 0});
      values += work.bins.count[bin];
    }
  }
  return values;
}

// Bins of a single value get its level and are heavy no more.
template <class Real>
void HeavyBins<Real>::settle_single_values(const Work& work, int32_t* levels) {
  low_.assign(heavy_.size(), std::numeric_limits<Real>::infinity());
  high_.assign(heavy_.size(), -std::numeric_limits<Real>::infinity());
  work.each_strip([&](const Real* x, int64_t n) {
    work.kernels.marked_range(x, n, work.bins.plan.map, marks_.data(), low_.data(), high_.data());
  });
  size_t kept = 0;
  for (size_t h = 0; h < heavy_.size(); ++h) {
    const int32_t bin = heavy_[h].bin;
    if (low_[h] < high_[h]) {
      marks_[bin] = static_cast<int32_t>(kept);
      heavy_[kept++] = heavy_[h];
      continue;
    }
    marks_[bin] = -1;
    levels[bin] = work.level(bin, low_[h], work.bins.count[bin]);
  }
  heavy_.resize(kept);
}

template <class Real>
void HeavyBins<Real>::collect(const Work& work) {
  flagged_.clear();
  int64_t start = 0;
  work.each_strip([&](const Real* x, int64_t n) {
    place_.resize(std::max<size_t>(place_.size(), n));
    const uint16_t* bin = work.bins.find(work.kernels, x, n);
    const int64_t found = work.tables.marked_places(bin, n, marks_.data(), place_.data());
    for (int64_t i = 0; i < found; ++i) {
      const int32_t place = place_[i];
      flagged_.push_back({start + place, work.bins.plan.map.t(x[place]), marks_[bin[place]]});
    }
    start += n;
  });
}

// Each bin's values side by side, then sorted and ranked.
template <class Real>
void HeavyBins<Real>::rank_each(const Work& work) {
  begin_.clear();
  int32_t total = 0;
  for (const HeavyBin& heavy : heavy_) {
    begin_.push_back(total);
    total += static_cast<int32_t>(work.bins.count[heavy.bin]);
  }
  sorted_.resize(total);
  end_ = begin_;
  for (const Flagged& value : flagged_) sorted_[end_[value.heavy]++] = value.t;
  thresholds_.clear();
  for (size_t h = 0; h < heavy_.size(); ++h) {
    rank(work, heavy_[h], sorted_.data() + begin_[h], end_[h] - begin_[h]);
  }
}

template <class Real>
void HeavyBins<Real>::rank(const Work& work, HeavyBin& heavy, Real* values, int32_t n) {
  sort_values(values, n, scratch_);
  heavy.thresholds_begin = static_cast<int32_t>(thresholds_.size());
  for (int32_t i = 0; i < n;) {
    int32_t end = i + 1;
    while (end < n && values[end] == values[i]) ++end;
    const int32_t level = work.level(heavy.bin, values[i], end);
    if (i == 0) heavy.base = level;
    thresholds_.resize(heavy.thresholds_begin + level - heavy.base, values[i]);
    i = end;
  }
  heavy.thresholds_end = static_cast<int32_t>(thresholds_.size());
}

template class HeavyBins<float>;
template class HeavyBins<double>;

}  // namespace qact::core::cpu
