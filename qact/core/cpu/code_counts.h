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
    n_[code] += static_cast<int32_t>(n);
    xhat_[code] += xhat;
    level_[code] = static_cast<uint8_t>(level);
  }

  bool empty(int32_t code) const { return n_[code] == 0; }
  // The same without xhat, and then all xhat at once.
  void add(int32_t code, int32_t level, int32_t n) { add(code, level, n, 0); }
  void set_xhat(const TableKernels& tables, const CodeRuns& runs, double origin, double width) {
    tables.code_xhat(runs, n_, origin, width, xhat_);
  }

  LevelSums level_sums(const TableKernels& tables) const { return tables.level_sums(n_, level_); }
  const uint8_t* levels() const { return level_; }

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
  int32_t n_[kCodes];  // a channel has fewer than 2^30 values
  double xhat_[kCodes];
  uint8_t level_[kCodes];
};

}  // namespace qact::core::cpu
