// A channel's values counted into the bins of its plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/cpu/aligned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

template <class Real>
struct Histogram {
  BinPlan<Real> plan;
  AlignedVector<uint32_t> count;
  AlignedVector<int32_t> before;  // exclusive prefix sums of count, two more than bins
  int32_t negatives = 0;          // values of z < 0

  // For n values: clear, add all strips, finish. `keeps`: the bins of all strips.
  void clear(int64_t n, bool keeps = false);
  void add(const TensorKernels<Real>& kernels, const Real* x, int64_t n, Prefetch& next) {
    found_.resize(std::max<size_t>(found_.size(), keeps_ ? total_ : n));
    kernels.count_bins(x, n, plan.map, found_.data() + (keeps_ ? counted_ : 0), count.data(), odd(),
                       next);
    counted_ += n;
    all_found_ = keeps_ ? counted_ == total_ : n == total_;
  }
  // The strips that another histogram of the same plan was given.
  void add(const Histogram& other);
  void finish(const TableKernels& tables);
  // Of one bin.
  void remove(int32_t bin, int32_t values);

  // The bins of a strip's values, the first of which comes after `start` others: as they were
  // counted or, unless all were kept, in `scratch`.
  const uint16_t* find(const TensorKernels<Real>& kernels, const Real* x, int64_t start, int64_t n,
                       uint16_t* scratch) const {
    if (all_found_) return found_.data() + (QACT_MUTANT("histogram_kept_bins") ? 0 : start);
    kernels.find_bins(x, n, plan.map, scratch);
    return scratch;
  }

  int32_t total() const { return total_; }

 private:
  uint32_t* odd() { return odd_.empty() ? count.data() : odd_.data(); }

  int32_t total_ = 0;
  int64_t counted_ = 0;
  bool keeps_ = false, all_found_ = false;
  AlignedVector<uint32_t> odd_;
  AlignedVector<uint16_t> found_;
};

// The number of values below the given z_i or, if there are none, below z_i = first + i * step:
// whole + part, each bin's values spread evenly over the bin.
struct CumulativeCounts {
  AlignedVector<int32_t> whole;
  AlignedVector<float> part;
  bool parts = true;  // whether find() found any

  // z: padded(n) of them
  template <class Real>
  void find(const TableKernels& tables, const Histogram<Real>& bins, const float* z, double first,
            double step, int32_t n);
};

}  // namespace qact::core::cpu
