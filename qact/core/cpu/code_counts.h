// How a context's values fall on its codes, and the table that the backward pass needs of that.
#pragma once

#include <cstdint>

#include "qact/core/codes.h"
#include "qact/core/cpu/density_grid.h"
#include "qact/core/cpu/kernels.h"

namespace qact::core::cpu {

class CodeCounts {
 public:
  // `farthest`: no value has a larger |xhat|.
  void clear(double farthest);

  // `n` values of that code, whose xhat add up to `xhat`.
  void add(int32_t code, int32_t level, int64_t n, double xhat) {
    runs_.n[code] += static_cast<int32_t>(n);
    runs_.level[code] = static_cast<uint8_t>(level);
    xhat_[code] += xhat;
  }
  // All values of a histogram, whose bins have their middles at origin + bin * width. `code` comes
  // with the number of cells that begin at each bin, and becomes the bins' codes.
  void set_bins(const TableKernels& tables, const BinCounts& bins, uint8_t* code,
                const RunScratch& scratch, double origin, double width) {
    tables.bin_codes(bins, code, scratch, runs_, origin, width, xhat_);
  }

  LevelSums level_sums(const TableKernels& tables) const {
    return tables.level_sums(runs_.n, runs_.level);
  }
  const uint8_t* levels() const { return runs_.level; }

  // All but the statistics of `table`, with the density of z = weight * xhat + bias; n values in
  // all.
  void fill(const TableKernels& tables, const DensityGrid& grid, double weight, double bias,
            double n, CodeTable& table) const;
  // The same, given the sums of the density over each code's values.
  void fill(const TableKernels& tables, const double* density_sum, double n,
            CodeTable& table) const;

 private:
  void set_inputs(const TableKernels& tables, CodeTable& table) const;
  void add_up(const TableKernels& tables, double n, CodeTable& table) const;

  double farthest_ = 0;
  CodeRuns runs_;
  double xhat_[kCodes];
};

}  // namespace qact::core::cpu
