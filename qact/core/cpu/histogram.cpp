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

void CumulativeCounts::resize(int32_t n) {
  whole.resize(padded(n));
  part.resize(padded(n));
}

template <class Real>
void CumulativeCounts::along(const TableKernels& tables, const Histogram<Real>& bins, double first,
                             double step, int32_t n) {
  resize(n);
  const BinPlan<Real>& plan = bins.plan;
  if (plan.z_width > 0) {
    // Bins much finer than the steps need not be split.
    constexpr double kFine = 4;
    const bool fine = kFine * plan.z_width <= step;
    parts = !fine;
    tables.cumulative_at(bins.before.data(), plan.bins, nullptr,
                         static_cast<float>((first - plan.z_first) / plan.z_width),
                         static_cast<float>(step / plan.z_width), n, whole.data(),
                         fine ? nullptr : part.data());
    return;
  }
  parts = false;
  for (int32_t i = 0; i < n; ++i) {  // all values are one
    whole[i] = first + i * step > plan.z_first ? bins.total() : 0;
  }
}

template <class Real>
void CumulativeCounts::at(const TableKernels& tables, const Histogram<Real>& bins, const float* z,
                          int32_t n) {
  resize(n);
  const BinPlan<Real>& plan = bins.plan;
  if (plan.z_width > 0) {
    tables.cumulative_at(bins.before.data(), plan.bins, z,
                         static_cast<float>(-plan.z_first / plan.z_width),
                         static_cast<float>(1 / plan.z_width), n, whole.data(), part.data());
    return;
  }
  for (int32_t i = 0; i < n; ++i) {
    whole[i] = z[i] > plan.z_first ? bins.total() : 0;
    part[i] = 0;
  }
}

#define QACT_INSTANTIATE(Real)                                                                  \
  template struct Histogram<Real>;                                                              \
  template void CumulativeCounts::along(const TableKernels&, const Histogram<Real>&, double,    \
                                        double, int32_t);                                       \
  template void CumulativeCounts::at(const TableKernels&, const Histogram<Real>&, const float*, \
                                     int32_t);
QACT_INSTANTIATE(float)
QACT_INSTANTIATE(double)
#undef QACT_INSTANTIATE

}  // namespace qact::core::cpu
