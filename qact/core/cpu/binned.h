// The binned algorithm on one channel: an integer histogram in the order of z, levels
// at the middle of each bin's mass, and a second look at the bins too heavy for that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qact/core/cpu/code_counts.h"
#include "qact/core/cpu/density_grid.h"
#include "qact/core/cpu/heavy_bins.h"
#include "qact/core/cpu/histogram.h"
#include "qact/core/levels.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

template <class Real>
class BinnedChannel {
 public:
  // Filled by the caller; no bins: the channel is not binned.
  Histogram<Real> bins;

  // Resolves the levels of bins that are no heavier than half a level. Returns whether there are
  // others: then all strips must be collected, in order, and resolved in their turn.
  bool solve(const TensorKernels<Real>& kernels, const TableKernels& tables,
             const Quantile& quantile);
  bool heavy() const { return has_heavy_; }
  void collect(const TensorKernels<Real>& kernels, const TableKernels& tables,
               const Quantile& quantile, const Real* x, int64_t n) {
    heavy_.collect(work(kernels, tables, quantile), x, n);
  }
  void resolve_heavy_bins(const TensorKernels<Real>& kernels, const TableKernels& tables,
                          const Quantile& quantile) {
    overrides_ = heavy_.resolve(work(kernels, tables, quantile), level_.data());
  }

  // By bin; the overrides ascend in position.
  const uint16_t* levels() const { return level_.data(); }
  void set_level(int32_t bin, int32_t level) {
    resolve_level(bin, level, bins.plan.bins, level_.data());
  }
  const std::vector<Override>& overrides() const { return overrides_; }

  // The density of the weighted context at the middle of every bin.
  void density_by_bin(const TableKernels& tables, const Quantile& quantile);
  const std::vector<float>& bin_density() const { return bin_density_; }

  // The codes of bins and overrides, and their counts; z = weight * xhat + bias.
  void find_codes(const TableKernels& tables, const CodeCells& cells, double weight, double bias,
                  CodeCounts& counts);
  const uint8_t* codes() const { return code_.data(); }
  int32_t code(const Override& value) const {
    return code_[value.bin] - level_[value.bin] + value.level;
  }
  // The rest of a table with the density.
  void fill_table(const TableKernels& tables, const Quantile& quantile, double weight, double bias,
                  const CodeCounts& counts, CodeTable& table);

  // Writes the channel's context, ties apart. The last use of the histogram, which loses them.
  void write_context(const TableKernels& tables, int64_t* context) {
    write_context(tables, has_heavy_ ? std::span(heavy_.ties()) : std::span<const Tie>{}, context);
  }
  void write_context(const TableKernels& tables, std::span<const Tie> ties, int64_t* context);

 private:
  typename HeavyBins<Real>::Work work(const TensorKernels<Real>& kernels,
                                      const TableKernels& tables, const Quantile& quantile) const {
    return {kernels, tables, bins, rule_, quantile.bound};
  }
  bool resolve_light_bins(const TableKernels& tables, const Quantile& quantile);
  void estimate_density(const TableKernels& tables, const Quantile& quantile);

  LevelRule rule_{Quantile{}, 0, 0};
  AlignedVector<uint16_t> level_;
  AlignedVector<uint8_t> code_;
  AlignedVector<int32_t> start_;
  AlignedVector<uint32_t> moment_;
  HeavyBins<Real> heavy_;
  bool has_heavy_ = false;
  std::vector<Override> overrides_;
  CumulativeCounts cumulative_;
  DensityGrid density_;
  AlignedVector<float> cells_;
  std::vector<float> bin_density_;
};

}  // namespace qact::core::cpu
