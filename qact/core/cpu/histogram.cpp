#include "qact/core/cpu/histogram.h"

#include <algorithm>

#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

void add_counts(const AlignedVector<uint32_t>& more, int32_t bins, AlignedVector<uint32_t>& to) {
  for (int32_t b = 0; b < bins; ++b) to[b] += more[b];
}

}  // namespace

template <class Real>
void Histogram<Real>::clear(int64_t n, bool keeps) {
  total_ = static_cast<int32_t>(n);
  counted_ = 0;
  keeps_ = keeps;
  all_found_ = false;
  count.assign(padded_bins(plan.bins), 0);
  odd_.assign(n < kLongChannel ? 0 : count.size(), 0);
}

template <class Real>
void Histogram<Real>::add(const Histogram& other) {
  add_counts(other.count, plan.bins, count);
  if (!odd_.empty() && !QACT_MUTANT("histogram_of_other_thread")) {
    add_counts(other.odd_, plan.bins, odd_);
  }
}

template <class Real>
void Histogram<Real>::finish(const TableKernels& tables) {
  if (!odd_.empty()) add_counts(odd_, plan.bins, count);
  before.resize(count.size());
  tables.prefix_sums(count.data(), plan.bins, before.data());
  before[plan.bins + 1] = total_;
  negatives = before[plan.split];
}

template <class Real>
void Histogram<Real>::remove(int32_t bin, int32_t values) {
  count[bin] -= values;
  for (int32_t b = bin + 1 + QACT_MUTANT("histogram_remove"); b < plan.bins + 2; ++b) {
    before[b] -= values;
  }
  total_ -= values;
}

template <class Real>
void CumulativeCounts::find(const TableKernels& tables, const Histogram<Real>& bins, const float* z,
                            double first, double step, int32_t n) {
  const BinPlan<Real>& plan = bins.plan;
  // Bins much finer than the steps need not be split.
  constexpr double kFine = 4;
  parts = z || kFine * plan.z_width > step;
  whole.resize(padded(n));
  part.resize(padded(n));
  if (plan.z_width > 0) {
    tables.cumulative_at(
        bins.before.data(), plan.bins, z, static_cast<float>((first - plan.z_first) / plan.z_width),
        static_cast<float>(step / plan.z_width), n, whole.data(), parts ? part.data() : nullptr);
    return;
  }
  for (int32_t i = 0; i < n; ++i) {  // all values are one
    whole[i] = (z ? z[i] : first + i * step) > plan.z_first ? bins.total() : 0;
    part[i] = 0;
  }
}

#define QACT_INSTANTIATE(Real)                                                                    \
  template struct Histogram<Real>;                                                                \
  template void CumulativeCounts::find(const TableKernels&, const Histogram<Real>&, const float*, \
                                       double, double, int32_t);
QACT_INSTANTIATE(float)
QACT_INSTANTIATE(double)
#undef QACT_INSTANTIATE

}  // namespace qact::core::cpu
