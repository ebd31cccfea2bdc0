// Levels and ranks by comparison; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

template <class Real>
void search(const Real* z, int64_t n, const Real* thresholds, int32_t count, int32_t* level) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  int32_t size = 1;
  while (size - 1 < count) size *= 2;
  const I counts = all<I>(count);
  const auto find = [&](const V& v) -> I {
    I low{};
    for (int32_t step = size / 2; step > 0; step /= 2) {
      low += less_equal<Real>(gather(thresholds, low + (step - 1)), v) & step;
    }
    return minimum(low, counts);
  };
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store(level + i, find(load<V>(z + i)));
  if (i < n) {
    store_some(level + i, find(load_some<V>(z + i, (int)(n - i), (Real)0)), (int)(n - i));
  }
}

template <class Real>
void ranks(const Real* z, int32_t n, int32_t* rank) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  for (int32_t i = 0; i < n; i += kN) {
    const int some = n - i < kN ? n - i : kN;
    const V own = load_some<V>(z + i, some, (Real)0);
    I count{};
    for (int32_t j = QACT_MUTANT("ranks_first"); j < n; ++j)
      count = count - less_equal<Real>(all<V>(z[j]), own);
    store_some(rank + i, count, some);
  }
}

}  // namespace
}  // namespace qact::core::cpu
