// The levels of values in heavy bins, where no process has all of a bin's values: by counting.
//
// A bin heavier than half a level does not tell its values' levels. So its range of t is cut into
// intervals, whose counts over all ranks bound the levels of their values. Intervals whose bounds
// agree are done, the others are cut again, down to a single number if need be: its values tie.
// Four (float) or eight (double) rounds end every search, and there are never more open intervals
// than levels and one more; but where a running context wants to know of ties, those that may hold
// one are cut, too.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/code_counts.h"
#include "qact/core/cpu/heavy_bins.h"
#include "qact/core/cpu/histogram.h"
#include "qact/core/levels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

// Numbers in their order as whole numbers, without gaps; -0 is 0.
template <class Real>
uint64_t key_of(Real t) {
  using Bits = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Real) - 1);
  const Bits bits = std::bit_cast<Bits>(t + Real{0});
  return static_cast<Bits>(bits & kSign ? ~bits : bits | kSign);
}
template <class Real>
Real number_of(uint64_t key) {
  using Bits = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Real) - 1);
  const Bits bits = static_cast<Bits>(key);
  return std::bit_cast<Real>(static_cast<Bits>(bits & kSign ? bits ^ kSign : ~bits));
}

template <class Real>
class LevelSearch {
 public:
  // Of the bins of a histogram over all ranks that are heavier than half a level; low and high are
  // the channel's extremes. `ties`: whether they are wanted.
  void start(const TableKernels& tables, const Histogram<Real>& bins, const Quantile& quantile,
             Real low, Real high, bool ties);

  // A part of a heavy bin.
  struct Interval {
    int32_t heavy;
    uint64_t begin, end;    // keys of t
    int64_t before, count;  // values of its bin below it, and in it
    int32_t level = 0;      // once done
    int32_t first = 0;      // of its counters, while it is open;
    int32_t shift = 0;      // each counts 2^shift keys
    int32_t parts() const { return static_cast<int32_t>(((end - begin - 1) >> shift) + 1); }
  };

  // Rounds, as long as any interval is open: all ranks' counters, added up.
  bool open() const { return !open_.empty(); }
  int64_t counters() const { return counters_; }
  void count(const TensorKernels<Real>& kernels, const uint16_t* bin, const Real* x, int64_t n,
             int32_t* counters) const;
  void next(const int32_t* counters);

  // Then every heavy bin has a level, that of most of its values,
  struct HeavyBin {
    int32_t bin;
    bool positive;
    int64_t below;  // values of its sign below the bin
    int32_t level = 0;
    int32_t begin = 0, end = 0;  // of its intervals
  };
  const std::vector<HeavyBin>& heavy() const { return heavy_; }
  // Those that are open, or all of them once none is.
  const std::vector<Interval>& intervals() const { return open() ? open_ : done_; }
  const std::vector<Tie>& ties() const { return ties_; }
  // the codes of all others are corrected: in the context's counts, xhat that of a bin,
  template <class Xhat>
  void correct(const uint8_t* codes, const Xhat& xhat, CodeCounts& counts) const {
    for (const HeavyBin& heavy : heavy_) {
      for (int32_t i = heavy.begin; i < heavy.end; ++i) {
        const Interval& done = done_[i];
        if (done.level == heavy.level) continue;
        const int32_t code = codes[heavy.bin];
        const double sum = static_cast<double>(done.count) * xhat(heavy.bin);
        counts.add(code, heavy.level, -done.count, -sum);
        if (QACT_MUTANT("search_counts")) continue;
        counts.add(code - heavy.level + done.level, done.level, done.count, sum);
      }
    }
  }
  // and in a strip's code bytes.
  void correct(const TensorKernels<Real>& kernels, const uint16_t* bin, const Real* x, int64_t n,
               const uint8_t* codes, uint8_t* code) const;

 private:
  int level(const HeavyBin& heavy, uint64_t key, int64_t rank) const;
  void place(Interval interval);
  void number_counters();
  void finish();
  template <class Visit>
  void for_each_marked(const TensorKernels<Real>& kernels, const uint16_t* bin, const Real* x,
                       int64_t n, const Visit& visit) const;
  static const Interval* find(const std::vector<Interval>& among, int32_t begin, int32_t end,
                              uint64_t key);

  BinPlan<Real> plan_;
  double bound_ = 0;
  LevelRule rule_{Quantile{}, 0, 0};
  int64_t of_sign_[2] = {};  // values < 0, and others
  bool wants_ties_ = false;
  std::vector<HeavyBin> heavy_;
  std::vector<Tie> ties_;
  std::vector<Interval> open_, done_;
  int64_t counters_ = 0;
  std::vector<int32_t> marks_;  // by bin: its index in heavy_, or -1
};

}  // namespace qact::core::cpu
