// The second look of the binned algorithm. A bin heavier than half a level does not tell
// its values' levels: those that differ from its leader, the first one met, are collected and
// sorted. Most bins that are heavy by more than chance are so by ties, and those lead.
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/cpu/histogram.h"
#include "qact/core/levels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

// A value whose bin does not tell its level.
struct Override {
  int64_t position;  // in the order of the strips
  int32_t bin;
  int32_t level;
};

// Equal values that a running context must know of: context_is_tie.
struct Tie {
  int32_t bin;
  int32_t count;
  float z;
};

// Levels of other bins are rounded. So the bins behind a heavy one, empty ones above all, may have
// the level below, and those before it one above. Levels by bin must not descend.
inline void resolve_level(int32_t bin, int32_t level, int32_t bins, uint16_t* levels) {
  const auto resolved = static_cast<uint16_t>(level);
  levels[bin] = resolved;
  for (int32_t b = bin + 1; b < bins && levels[b] < resolved; ++b) {
    if (!QACT_MUTANT("resolve_level_behind")) levels[b] = resolved;
  }
  for (int32_t b = bin; b > 0 && levels[b - 1] > resolved; --b) levels[b - 1] = resolved;
}

template <class Real>
class HeavyBins {
 public:
  // The channel at hand.
  struct Work {
    const TensorKernels<Real>& kernels;
    const TableKernels& tables;
    const Histogram<Real>& bins;
    const LevelRule& rule;
    double bound;

    int level(int32_t bin, Real t, int64_t rank_in_bin) const;
  };

  // For a channel: mark, collect all its strips in order, resolve.
  void mark(const Work& work);
  void collect(const Work& work, const Real* x, int64_t n);
  // Corrects the levels by bin and returns the values whose levels they still do not tell,
  // in order of position.
  const std::vector<Override>& resolve(const Work& work, uint16_t* levels);
  // Those found by resolve.
  const std::vector<Tie>& ties() const { return ties_; }

 private:
  // Its values are told apart by thresholds on t.
  struct HeavyBin {
    int32_t bin;
    int32_t others = -1;  // values that are not the leader's; -1 before there is one
    Real leader = 0;
    int32_t base = 0;  // the level below the first threshold
    int32_t thresholds_begin = 0, thresholds_end = 0;
  };
  struct Flagged {
    int64_t position;
    Real t;
    int32_t heavy;
  };

  void rank_each(const Work& work, uint16_t* levels);
  int32_t rank(const Work& work, HeavyBin& heavy, Real* others);

  void find_leader(const Work& work, const Real* x, const uint16_t* bin, int64_t n);

  std::vector<HeavyBin> heavy_;
  int32_t heaviest_ = 0;  // of them
  Real skip_ = 0;         // its leader as a value; NaN before there is one
  std::vector<int32_t> found_;
  std::vector<int32_t> marks_;  // by bin: its index in heavy_, or -1; all -1 between calls
  std::vector<Real> thresholds_, sorted_;
  std::vector<int32_t> place_, begin_, end_;
  std::vector<Flagged> flagged_;
  int64_t collected_ = 0;  // values of the strips so far
  std::vector<Override> overrides_;
  std::vector<Tie> ties_;
  std::vector<uint8_t> scratch_;
};

}  // namespace qact::core::cpu
