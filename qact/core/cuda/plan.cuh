// A channel's summary, merged from the parts that blocks saw, and the plan that follows.
#pragma once

#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/cuda/block.cuh"
#include "qact/core/cuda/numbers.cuh"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cuda {

// Sums of d = x - shift over some of a channel's values; NaN is counted apart.
struct Partial {
  double sum = 0, square = 0;
  float low = INFINITY, high = -INFINITY;
  uint32_t nans = 0, infinite = 0;

  __device__ void widen(float x) {
    low = fminf(low, x);
    high = fmaxf(high, x);
  }
  __device__ void count(float x) {
    nans += isnan(x);
    infinite += isinf(x);
  }
  __device__ void add_widely(float x, float shift) {
    const double d = static_cast<double>(x) - shift;
    widen(x);
    count(x);
    sum += d;
    square += d * d;
  }
  // A few values, of which floats can hold the sums. Where they cannot, it shows in the squares.
  template <int kCount>
  __device__ void add(const float (&x)[kCount], float shift) {
    float sums = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float d = x[i] - shift;
      widen(x[i]);
      sums += d;
      squares += d * d;
    }
    if (isfinite(squares)) {
      sum += sums;
      square += squares;
      return;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) add_widely(x[i], shift);
  }
  __device__ bool finite() const { return nans == 0 && infinite == 0; }
  __device__ static Partial merge(const Partial& a, const Partial& b) {
    Partial out;
    out.sum = a.sum + b.sum;
    out.square = a.square + (QACT_MUTANT("cuda_merge_square") ? 0 : b.square);
    out.low = fminf(a.low, b.low);
    out.high = fmaxf(a.high, b.high);
    out.nans = a.nans + b.nans;
    out.infinite = a.infinite + b.infinite;
    return out;
  }
};

// One value of the channel, so that the sums stay small.
__device__ inline float shift_of(float first) { return isfinite(first) ? first : 0.0f; }

enum How : int32_t { kBinned, kExact, kNotFinite };

struct ChannelPlan {
  BinPlan<float> bins;
  Norm norm;
  Summary<float> summary;
  int64_t values;  // that are not NaN
  How how;
  int32_t exact;  // binned: a bin in which the level changes is ranked value by value
  int32_t again;  // the sums told too little, and must be taken in double
};

// A norm's own numbers of one channel.
struct Affine {
  double weight, bias;

  __device__ static Affine of(const ChannelVector& weight, const ChannelVector& bias,
                              uint32_t channel) {
    return {weight.at(channel, 1.0), bias.at(channel, 0.0)};
  }
};

// The norm of a fused layer, or none for the plain operator.
struct NormIn {
  bool present = false;
  double eps = 0;
  ChannelVector weight, bias;
  Divider channels;  // of a set of contexts

  __device__ Affine of(uint32_t context) const {
    return Affine::of(weight, bias, channels.remainder(context));
  }
};

// Whether no bin holds c or -c, whose place among the values would be told by bins only.
__device__ inline bool within(const BinPlan<float>& bins, double bound) {
  return fabs(bins.z_first) < bound && fabs(bins.z_last()) < bound;
}

// A channel's summary and its inner norm, without bins.
__device__ inline ChannelPlan plan_norm(const Partial& all, float shift, uint32_t n,
                                        const NormIn& norm_in, const Affine& affine,
                                        const Quantile& quantile) {
  ChannelPlan plan;
  const double share = 1.0 / n, mean = all.sum * share;
  plan.summary.n = n;
  plan.summary.mean = shift + mean;
  plan.summary.variance = fmax(0.0, all.square * share - mean * mean);
  plan.summary.low = all.low;
  plan.summary.high = all.high;
  plan.values = static_cast<int64_t>(n) - all.nans;
  constexpr double kTooFar = 0.01;  // of the second moment must remain, as on CPU
  const double second = all.square * share;
  plan.again = norm_in.present && all.finite() &&
               !(isfinite(second) && plan.summary.variance >= kTooFar * second);
  plan.norm = {};
  if (norm_in.present) {
    plan.norm = {plan.summary.mean, affine.weight * rsqrt(plan.summary.variance + norm_in.eps),
                 affine.bias};
  }
  const bool usable = isfinite(plan.norm.scale) && isfinite(plan.norm.shift);
  plan.exact = quantile.exact_for(n) && plan.norm.scale != 0;
  plan.how =
      norm_in.present && !(all.finite() && plan.summary.finite() && usable) ? kNotFinite : kExact;
  return plan;
}

__device__ inline ChannelPlan make_plan(const Partial& all, float shift, uint32_t n,
                                        const NormIn& norm_in, const Affine& affine,
                                        const Quantile& quantile) {
  ChannelPlan plan = plan_norm(all, shift, n, norm_in, affine, quantile);
  if (plan.how != kNotFinite && all.finite() && plan.summary.finite() &&
      plan.bins.make(plan.summary, plan.norm, quantile.bandwidth, bins_for(n)) &&
      (!plan.exact || within(plan.bins, quantile.bound))) {
    plan.how = kBinned;
  }
  return plan;
}

// One warp merges a channel's parts; every lane gets the result.
__device__ inline Partial merge_parts(const Partial* parts, uint32_t count) {
  const uint32_t lane = threadIdx.x % kWarp;
  Partial all;
#pragma unroll 4
  for (uint32_t i = lane; i < count; i += kWarp) all = Partial::merge(all, parts[i]);
  for (int mask = kWarp / 2; mask > 0; mask /= 2) all = Partial::merge(all, shuffle_xor(all, mask));
  return all;
}

// Of a value in the channel's range: the map's bounds were rounded the same way, so that it
// needs no keeping within them.
__device__ inline int bin_of(float x, float origin, float scale, int offset) {
  return __float2int_rd(__fmul_rn(__fsub_rn(x, origin), scale)) + offset;
}
__device__ inline int bin_of(float x, const BinMap<float>& map) {
  return bin_of(x, map.origin, map.scale, map.offset);
}

}  // namespace qact::core::cuda
