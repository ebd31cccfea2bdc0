// What the kernels for short channels are given, and how they write.
#pragma once

#include "qact/core/cuda/forward.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <class T>
struct SmallCall {
  Values<T> x;
  Results<T> y;
  Results<uint8_t> code;  // fused layer only, optional
  Results<T> density;     // plain operator only, optional
  bool plain;
};

template <class T>
__device__ inline void write_value(const SmallCall<T>& call, const SolveCall& solve,
                                   uint32_t channel, uint32_t i, float x, const Found& found,
                                   const OutNorm& norm) {
  const int k = found.level;
  if (!call.plain) {
    call.y.at(channel, i) = from_float<T>(k * norm.scale + norm.shift);
    if (!call.code.data) return;
    call.code.at(channel, i) = static_cast<uint8_t>(found.code - QACT_MUTANT("cuda_small_code"));
  } else {
    call.y.at(channel, i) = from_float<T>(
        isnan(x) ? x : __fdiv_rn(static_cast<float>(k), static_cast<float>(solve.quantile.levels)));
  }
}

}  // namespace qact::core::cuda
