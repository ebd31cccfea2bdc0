// The binned algorithm on one channel: an integer histogram in the order of z, levels
// at the middle of each bin's mass, and a second look at the bins too heavy for that.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "qact/core/cpu/density_grid.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/levels.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

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

// A channel's strips in order: each_strip(visit) calls visit(x, n).
template <class Real>
using EachStrip = std::function<void(const std::function<void(const Real*, int64_t)>&)>;

template <class Real>
class BinnedChannel {
 public:
  BinPlan<Real> plan;

  // A value whose bin does not tell its level.
  struct Exception {
    int64_t position;  // in the order of the strips
    int32_t level;
  };

  void clear_histogram(int64_t n);
  void count(const TensorKernels<Real>& kernels, const Real* x, int64_t n, Ahead& next) {
    kernels.histogram(x, n, plan.map, count_.data(), odd(), next);
  }

  // Settles every level. Reads the channel again only if some bin is heavier than half a
  // level.
  void solve(const TensorKernels<Real>& kernels, const TableKernels& tables,
             const Quantile& quantile, const EachStrip<Real>& each_strip);

  // By bin; the exceptions ascend in position.
  const int32_t* levels() const { return level_.data() + kFront; }
  const std::vector<Exception>& exceptions() const { return exceptions_; }
  // How many of the channel's values have each level.
  const std::vector<int64_t>& members() const { return members_; }

  // The density of the weighted context; its mean over each level's members.
  void estimate_density(const TableKernels& tables, const Quantile& quantile);
  float density_of_bin(int32_t bin) const { return density_.at(plan.centre(bin)); }
  void mean_density(const TableKernels& tables, std::vector<float>& mean) const;

  // Writes the channel's kept context, spreading each bin's values evenly over the bin.
  void write_context(const TableKernels& tables, int64_t* context);

 private:
  static constexpr int kFront = 16;  // level_ has room before its first bin

  // A bin heavier than half a level. Its values are told apart by thresholds on t.
  struct HeavyBin {
    int32_t bin;
    int32_t base;  // the level below the first threshold
    int32_t thresholds_begin, thresholds_end;
  };
  struct Flagged {
    int64_t position;
    Real t;
    int32_t heavy;
  };

  // Long channels count into two histograms in turn; for short ones, adding the two up
  // would cost more than it saves.
  uint32_t* odd() { return odd_.empty() ? count_.data() : odd_.data(); }

  double half_level(bool positive) const { return 0.5 / ((levels_ + 1) * rule_.weight(positive)); }
  bool settle_light_bins(const TableKernels& tables, const Quantile& quantile);
  void count_levels(const TableKernels& tables);
  void settle_heavy_bins(const TensorKernels<Real>& kernels, const EachStrip<Real>& each_strip);
  void mark_heavy_bins();
  void settle_single_values(const TensorKernels<Real>& kernels, const EachStrip<Real>& each_strip);
  void rank(HeavyBin& heavy, Real* values, int32_t n);
  int level_in(int32_t bin, Real t, int64_t rank_in_bin) const;
  void cumulative_counts(const TableKernels& tables, const float* z, int32_t n);

  LevelRule rule_{Quantile{}, 0, 0};
  int levels_ = 0;
  double bound_ = 0;
  int32_t negatives_ = 0;
  std::vector<uint32_t> count_, odd_;
  std::vector<int32_t> before_;     // exclusive prefix sums of count_, one more than bins
  std::vector<int32_t> level_;      // from kFront on
  std::vector<int32_t> first_bin_;  // of each level, before any exceptions; one more than levels
  std::vector<int64_t> members_;
  std::vector<HeavyBin> heavy_;
  std::vector<int32_t> marks_;  // by bin: its index in heavy_, or -1
  std::vector<Real> thresholds_;
  std::vector<Flagged> flagged_;
  std::vector<Exception> exceptions_;
  std::vector<uint8_t> scratch_;
  std::vector<int32_t> whole_;  // of cumulative_counts
  std::vector<float> part_;
  DensityGrid density_;
};

}  // namespace qact::core::cpu
