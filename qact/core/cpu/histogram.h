// A channel's values counted into the bins of its plan.
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/bin_plan.h"
#include "qact/core/cpu/kernels.h"

namespace qact::core::cpu {

template <class Real>
struct Histogram {
  BinPlan<Real> plan;
  std::vector<uint32_t> count;
  std::vector<int32_t> before;  // exclusive prefix sums of count, one more than bins
  int32_t negatives = 0;        // values of z < 0

  // For n values: clear, add all strips, finish.
  void clear(int64_t n);
  void add(const TensorKernels<Real>& kernels, const Real* x, int64_t n, Ahead& next) {
    kernels.histogram(x, n, plan.map, count.data(), odd(), next);
  }
  void finish(const TableKernels& tables);

  int32_t total() const { return before[plan.bins]; }

 private:
  uint32_t* odd() { return odd_.empty() ? count.data() : odd_.data(); }

  std::vector<uint32_t> odd_;
};

// The number of values below z_i = first + i * step, or below the given z_i: whole + part,
// each bin's values spread evenly over the bin.
class CumulativeCounts {
 public:
  std::vector<int32_t> whole;
  std::vector<float> part;

  template <class Real>
  void along(const TableKernels& tables, const Histogram<Real>& bins, double first, double step,
             int32_t n);
  // z: padded(n) of them
  template <class Real>
  void at(const TableKernels& tables, const Histogram<Real>& bins, const float* z, int32_t n);

 private:
  void resize(int32_t n);
};

}  // namespace qact::core::cpu
