#include "qact/core/cpu/heavy_bins.h"

#include <algorithm>
#include <limits>

#include "qact/core/context.h"
#include "qact/core/mutant.h"
#include "qact/core/sort.h"

namespace qact::core::cpu {

template <class Real>
int HeavyBins<Real>::Work::level(int32_t bin, Real t, int64_t rank_in_bin) const {
  const bool positive = bin >= bins.plan.split;
  const int64_t below = bins.before[bin] - (positive ? bins.negatives : 0);
  const bool past_bound = bins.plan.z_of_t(t) >= (positive ? bound : -bound);
  return rule.level(positive, below + rank_in_bin + past_bound);
}

template <class Real>
const std::vector<Override>& HeavyBins<Real>::resolve(const Work& work, uint16_t* levels) {
  overrides_.clear();
  ties_.clear();
  rank_each(work, levels);
  for (const Flagged& value : flagged_) {
    const HeavyBin& heavy = heavy_[value.heavy];
    const auto begin = thresholds_.begin() + heavy.thresholds_begin;
    const auto end = thresholds_.begin() + heavy.thresholds_end;
    const auto passed = std::upper_bound(begin, end, value.t) - begin;
    overrides_.push_back({value.position, heavy.bin, heavy.base + static_cast<int32_t>(passed)});
  }
  for (const HeavyBin& heavy : heavy_) marks_[heavy.bin] = -1;
  return overrides_;
}

template <class Real>
void HeavyBins<Real>::mark(const Work& work) {
  const BinPlan<Real>& plan = work.bins.plan;
  heavy_.clear();
  flagged_.clear();
  collected_ = 0;
  heaviest_ = 0;
  skip_ = std::numeric_limits<Real>::quiet_NaN();
  found_.resize(plan.bins);
  marks_.resize(std::max(marks_.size(), padded(plan.bins)), -1);
  for (const bool positive : {false, true}) {
    const int32_t begin = positive ? plan.split : 0, end = positive ? plan.bins : plan.split;
    const int32_t limit = work.rule.half_level(positive);
    const int32_t found =
        work.tables.heavier(work.bins.count.data() + begin, end - begin, limit, found_.data());
    for (int32_t i = 0; i < found; ++i) {
      const int32_t bin = begin + found_[i];
      marks_[bin] = static_cast<int32_t>(heavy_.size());
      heavy_.push_back({bin});
      if (work.bins.count[bin] > work.bins.count[heavy_[heaviest_].bin]) {
        heaviest_ = marks_[bin];
      }
    }
  }
}

// Where values tie in great numbers, they need not be looked at one by one.
template <class Real>
void HeavyBins<Real>::find_leader(const Work& work, const Real* x, const uint16_t* bin, int64_t n) {
  HeavyBin& heavy = heavy_[heaviest_];
  const int64_t first = std::find(bin, bin + n, heavy.bin) - bin;
  if (first == n) return;
  skip_ = x[QACT_MUTANT("heavy_bins_skip") ? 0 : first];
  heavy.leader = work.bins.plan.map.t(skip_);
  heavy.others = 0;
}

template <class Real>
void HeavyBins<Real>::collect(const Work& work, const Real* x, int64_t n) {
  alignas(64) uint16_t scratch[kLongestStrip];
  const uint16_t* bin = work.bins.find(work.kernels, x, collected_, n, scratch);
  place_.resize(std::max<size_t>(place_.size(), n));
  if (skip_ != skip_) find_leader(work, x, bin, n);
  const int64_t found = work.kernels.marked_places(x, bin, n, marks_.data(), work.bins.plan.bins,
                                                   skip_, place_.data());
  for (int64_t i = 0; i < found; ++i) {
    const int32_t place = place_[i], mark = marks_[bin[place]];
    const Real t = work.bins.plan.map.t(x[place]);
    HeavyBin& heavy = heavy_[mark];
    if (heavy.others < 0) heavy.leader = t, heavy.others = 0;
    if (t == heavy.leader) continue;
    ++heavy.others;
    flagged_.push_back({collected_ + place, t, mark});
  }
  collected_ += n;
}

// Each bin's values side by side, then sorted and ranked. A bin's level is its leader's.
template <class Real>
void HeavyBins<Real>::rank_each(const Work& work, uint16_t* levels) {
  begin_.clear();
  int32_t total = 0;
  for (const HeavyBin& heavy : heavy_) {
    begin_.push_back(total);
    total += heavy.others;
  }
  sorted_.resize(total);
  end_ = begin_;
  for (const Flagged& value : flagged_) sorted_[end_[value.heavy]++] = value.t;
  thresholds_.clear();
  for (size_t h = 0; h < heavy_.size(); ++h) {
    const int32_t level = rank(work, heavy_[h], sorted_.data() + begin_[h]);
    resolve_level(heavy_[h].bin, level, work.bins.plan.bins, levels);
  }
}

// Passes the distinct values in ascending order, the leader among them, and returns its level.
template <class Real>
int32_t HeavyBins<Real>::rank(const Work& work, HeavyBin& heavy, Real* others) {
  sort_values(others, heavy.others, scratch_);
  heavy.thresholds_begin = static_cast<int32_t>(thresholds_.size());
  const Histogram<Real>& bins = work.bins;
  const int64_t of_its_sign =
      heavy.bin < bins.plan.split ? bins.negatives : bins.total() - bins.negatives;
  int64_t upto = 0;
  const auto pass = [&](Real t, int64_t count) {
    const bool first = upto == 0;
    upto += count;
    if (context_is_tie(count, of_its_sign)) {
      ties_.push_back(
          {heavy.bin, static_cast<int32_t>(count), static_cast<float>(bins.plan.z_of_t(t))});
    }
    const int32_t level = work.level(heavy.bin, t, upto);
    if (first) heavy.base = level;
    thresholds_.resize(heavy.thresholds_begin + level - heavy.base, t);
    return level;
  };
  int32_t i = 0;
  const auto pass_others = [&](auto before) {
    while (i < heavy.others && before(others[i])) {
      const int32_t begin = i;
      while (i < heavy.others && others[i] == others[begin]) ++i;
      pass(others[begin], i - begin);
    }
  };
  pass_others([&](Real t) { return t < heavy.leader; });
  const int32_t level = pass(
      heavy.leader, work.bins.count[heavy.bin] - heavy.others - QACT_MUTANT("heavy_bins_leader"));
  pass_others([](Real) { return true; });
  heavy.thresholds_end = static_cast<int32_t>(thresholds_.size());
  return level;
}

template class HeavyBins<float>;
template class HeavyBins<double>;

}  // namespace qact::core::cpu
