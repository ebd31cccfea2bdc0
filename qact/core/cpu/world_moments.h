// Exact sums (exact_moments.h) by the CPU's kernels.
#pragma once

#include <cstdint>

#include "qact/core/cpu/kernels.h"
#include "qact/core/exact_moments.h"

namespace qact::core::cpu {

// Adds blocks of values, a vector at a time.
template <class Real>
struct AddBlock {
  const TensorKernels<Real>& kernels;

  bool operator()(const Real* x, int64_t n, typename ExactMoments<Real>::Sums& sums) const {
    WholeSums found;
    if (!kernels.whole_sums(x, n, sums.coarse_unit(), found)) return false;
    sums.add_coarse(found.sum, found.squares);
    return true;
  }
};

}  // namespace qact::core::cpu
