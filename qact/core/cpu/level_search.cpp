#include "qact/core/cpu/level_search.h"

#include <algorithm>
#include <limits>

#include "qact/core/context.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

template <class Real>
void LevelSearch<Real>::start(const TableKernels& tables, const Histogram<Real>& bins,
                              const Quantile& quantile, Real low, Real high, bool ties) {
  plan_ = bins.plan;
  bound_ = quantile.bound;
  of_sign_[0] = bins.negatives;
  of_sign_[1] = bins.total() - bins.negatives;
  wants_ties_ = ties;
  rule_ = LevelRule(quantile, of_sign_[0], of_sign_[1]);
  std::vector<int32_t> found(plan_.bins);
  for (const bool positive : {false, true}) {
    const int32_t begin = positive ? plan_.split : 0, end = positive ? plan_.bins : plan_.split;
    const int32_t count = tables.heavier(bins.count.data() + begin, end - begin,
                                         rule_.half_level(positive), found.data());
    for (int32_t i = 0; i < count; ++i) {
      const int32_t bin = begin + found[i];
      heavy_.push_back({bin, positive, bins.before[bin] - (positive ? bins.negatives : 0)});
    }
  }
  if (heavy_.empty()) return;
  marks_.assign(padded(plan_.bins), -1);
  const Real at_low = plan_.map.t(low), at_high = plan_.map.t(high);
  const Real first = std::min(at_low, at_high), last = std::max(at_low, at_high);
  for (size_t h = 0; h < heavy_.size(); ++h) {
    marks_[heavy_[h].bin] = static_cast<int32_t>(h);
    const Real from = static_cast<Real>(heavy_[h].bin - plan_.map.offset);
    place({static_cast<int32_t>(h), std::max(key_of(from), key_of(first)),
           std::min(key_of(from + 1), key_of(last) + 1), 0, bins.count[heavy_[h].bin]});
  }
  number_counters();
}

// rank: how many of the bin's values are no larger than the key's number.
template <class Real>
int LevelSearch<Real>::level(const HeavyBin& heavy, uint64_t key, int64_t rank) const {
  const bool past_bound = plan_.z_of_t(number_of<Real>(key)) >= (heavy.positive ? bound_ : -bound_);
  return rule_.level(heavy.positive, heavy.below + rank + past_bound);
}

template <class Real>
void LevelSearch<Real>::place(Interval interval) {
  if (interval.count == 0) return;
  const HeavyBin& heavy = heavy_[interval.heavy];
  const bool alike = interval.end - interval.begin == 1;
  const int64_t last = interval.before + interval.count;
  const int least = level(heavy, interval.begin, alike ? last : interval.before + 1);
  interval.level = level(heavy, interval.end - 1, last - QACT_MUTANT("search_rank"));
  const bool ties = wants_ties_ && context_is_tie(interval.count, of_sign_[heavy.positive]);
  if (ties && alike) {
    ties_.push_back({heavy.bin, static_cast<int32_t>(interval.count),
                     static_cast<float>(plan_.z_of_t(number_of<Real>(interval.begin)))});
  }
  (alike || (least == interval.level && !ties) ? done_ : open_).push_back(interval);
}

template <class Real>
void LevelSearch<Real>::number_counters() {
  constexpr int kPartBits = 8;
  counters_ = 0;
  for (Interval& interval : open_) {
    const int bits = std::bit_width(interval.end - interval.begin - 1);
    interval.shift = std::max(0, bits - kPartBits);
    interval.first = static_cast<int32_t>(counters_);
    counters_ += interval.parts();
  }
  for (HeavyBin& heavy : heavy_) heavy.begin = heavy.end = 0;
  for (size_t i = 0; i < open_.size(); ++i) {
    HeavyBin& heavy = heavy_[open_[i].heavy];
    if (heavy.end == 0) heavy.begin = static_cast<int32_t>(i);
    heavy.end = static_cast<int32_t>(i) + 1;
  }
  if (open_.empty()) finish();
}

template <class Real>
void LevelSearch<Real>::next(const int32_t* counters) {
  std::vector<Interval> cut;
  cut.swap(open_);
  for (const Interval& interval : cut) {
    int64_t before = interval.before;
    for (int32_t i = 0; i < interval.parts(); ++i) {
      const uint64_t begin = interval.begin + (static_cast<uint64_t>(i) << interval.shift);
      const uint64_t end =
          i + 1 == interval.parts() ? interval.end : begin + (uint64_t{1} << interval.shift);
      const int64_t count = counters[interval.first + i];
      place({interval.heavy, begin, end, before, count});
      before += count;
    }
  }
  number_counters();
}

// One interval for each level of a bin, and the level of most of its values. No value lies between
// two intervals.
template <class Real>
void LevelSearch<Real>::finish() {
  std::sort(done_.begin(), done_.end(), [](const Interval& a, const Interval& b) {
    return a.heavy != b.heavy ? a.heavy < b.heavy : a.begin < b.begin;
  });
  std::vector<Interval> merged;
  for (const Interval& next : done_) {
    Interval* last = merged.empty() ? nullptr : &merged.back();
    if (last && last->heavy == next.heavy && last->level == next.level) {
      last->end = next.end;
      last->count += next.count;
    } else {
      merged.push_back(next);
    }
  }
  done_.swap(merged);
  std::vector<int64_t> most(heavy_.size());
  for (int32_t i = 0; i < static_cast<int32_t>(done_.size()); ++i) {
    const Interval& interval = done_[i];
    HeavyBin& heavy = heavy_[interval.heavy];
    if (heavy.end == 0) heavy.begin = i;
    heavy.end = i + 1;
    if (interval.count <= most[interval.heavy]) continue;
    most[interval.heavy] = interval.count;
    heavy.level = interval.level;
  }
}

// The interval that holds the key, among those of one bin.
template <class Real>
const typename LevelSearch<Real>::Interval* LevelSearch<Real>::find(
    const std::vector<Interval>& among, int32_t begin, int32_t end, uint64_t key) {
  const auto after =
      std::upper_bound(among.begin() + begin, among.begin() + end, key,
                       [](uint64_t k, const Interval& interval) { return k < interval.begin; });
  if (after == among.begin() + begin) return nullptr;
  const Interval& found = *(after - 1);
  return key < found.end ? &found : nullptr;
}

template <class Real>
template <class Visit>
void LevelSearch<Real>::for_each_marked(const TensorKernels<Real>& kernels, const uint16_t* bin,
                                        const Real* x, int64_t n, const Visit& visit) const {
  if (heavy_.empty()) return;
  constexpr Real kNone = std::numeric_limits<Real>::quiet_NaN();
  int32_t place[kLongestStrip];
  const int64_t found = kernels.marked_places(x, bin, n, marks_.data(), plan_.bins, kNone, place);
  for (int64_t i = 0; i < found; ++i) visit(place[i], heavy_[marks_[bin[place[i]]]]);
}

template <class Real>
void LevelSearch<Real>::count(const TensorKernels<Real>& kernels, const uint16_t* bin,
                              const Real* x, int64_t n, int32_t* counters) const {
  for_each_marked(kernels, bin, x, n, [&](int32_t place, const HeavyBin& heavy) {
    const uint64_t key = key_of(plan_.map.t(x[place]));
    const Interval* in = find(open_, heavy.begin, heavy.end, key);
    if (in) ++counters[in->first + static_cast<int32_t>((key - in->begin) >> in->shift)];
  });
}

template <class Real>
void LevelSearch<Real>::correct(const TensorKernels<Real>& kernels, const uint16_t* bin,
                                const Real* x, int64_t n, const uint8_t* codes,
                                uint8_t* code) const {
  for_each_marked(kernels, bin, x, n, [&](int32_t place, const HeavyBin& heavy) {
    const Interval* in = find(done_, heavy.begin, heavy.end, key_of(plan_.map.t(x[place])));
    const int32_t level = in ? in->level : heavy.level;
    code[place] = static_cast<uint8_t>(codes[heavy.bin] - heavy.level + level);
  });
}

template class LevelSearch<float>;
template class LevelSearch<double>;

}  // namespace qact::core::cpu
