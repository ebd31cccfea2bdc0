// Contexts of very few values, a warp each. Their keys are sorted, so that a value finds its rank
// by its own.
#pragma once

#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/small_call.cuh"
#include "qact/core/cuda/unbinned.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kShort = kExactLimit;  // values of such a context, at most
inline constexpr int kShortWarps = 8;       // contexts of a block: in columns, neighbours

template <int kEach>  // values of a lane
struct ShortSpace {
  static constexpr int kValues = kEach * kWarp;
  static constexpr int kNodes = kEach >= 4 ? 128 : 0;  // of fewer values, pairs cost less
  uint32_t key[kValues];                               // ascending, then kNoKey
  float z[kValues];                                    // theirs
  uint32_t context[kContextBins];
  uint32_t share[2][kNodes + 1];
  float mass[kNodes + 2 * kReach], density[kNodes + 1];
  double sums[8];
};

// Ascending over a warp: a lane gets kEach neighbours.
template <int kEach>
__device__ inline void sort_warp(uint32_t (&key)[kEach]) {
  const int first = threadIdx.x % kWarp * kEach;
#pragma unroll
  for (int size = 2; size <= kEach * kWarp; size *= 2) {
#pragma unroll
    for (int apart = size / 2; apart > 0; apart /= 2) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const bool rising = ((first + e) & size) == 0;
        if (apart >= kEach) {
          const uint32_t other = __shfl_xor_sync(0xffffffffu, key[e], apart / kEach);
          const bool lower = ((first + e) & apart) == 0;
          key[e] = lower == rising ? min(key[e], other) : max(key[e], other);
        } else if ((e & apart) == 0) {
          const uint32_t a = key[e], b = key[e | apart];
          key[e] = rising ? min(a, b) : max(a, b);
          key[e | apart] = rising ? max(a, b) : min(a, b);
        }
      }
    }
  }
}

// How many of ascending values come first for which `holds`, of kCount, a power of two.
template <int kCount, class Value, class Holds>
__device__ inline int count_first(const Value (&ascending)[kCount], const Holds& holds) {
  int count = 0;
#pragma unroll
  for (int step = kCount / 2; step > 0; step /= 2) {
    if (holds(ascending[count + step - 1])) count += step;
  }
  return count + holds(ascending[count]);
}

// A context, ranked; a lane has every kWarp-th value.
template <int kEach>
struct ShortContext {
  using Space = ShortSpace<kEach>;
  Space& space;
  const Quantile& quantile;
  ChannelPlan plan;
  uint32_t n, negatives;
  float x[kEach], z[kEach];
  bool valid[kEach];  // neither beyond the last one nor NaN
  int level[kEach];
  uint32_t sum = 0, square = 0;  // of all levels

  template <class T>
  __device__ ShortContext(const Values<T>& values, const SolveCall& solve, uint32_t context,
                          Space& own)
      : space(own), quantile(solve.quantile), n(values.n) {
    const float shift = shift_of(values[0]);
    Partial all;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      x[e] = index(e) < n ? values[index(e)] : NAN;
      if (index(e) < n) all.add_widely(x[e], shift);
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      all = Partial::merge(all, shuffle_xor(all, mask));
    }
    plan = plan_norm(all, shift, n, solve.norm_in, solve.norm_in.of(context), quantile);
    rank();
  }

  __device__ static uint32_t index(int e) { return threadIdx.x % kWarp + e * kWarp; }
  __device__ LevelRule rule() const { return {quantile, negatives, plan.values - negatives}; }
  __device__ bool positive(int e) const { return order_of_z(x[e]) >= zero_; }

 private:
  uint32_t zero_;

  __device__ uint32_t order_of_z(float v) const {
    return plan.norm.scale == 0 ? 0 : order_key(v, plan.norm.scale < 0);
  }
  // The key of the first value of at least z.
  __device__ uint32_t first_key(double at) const {
    if (plan.norm.scale == 0) return plan.norm.shift >= at ? 0 : 1;
    return key_of_z(plan.norm, at);
  }

  __device__ void rank() {
    const Norm& norm = plan.norm;
    uint32_t key[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      valid[e] = index(e) < n && !isnan(x[e]);
      z[e] = static_cast<float>(norm.z(x[e]));
      key[e] = valid[e] ? order_of_z(x[e]) : kNoKey;
    }
    sort_warp(key);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int at = threadIdx.x % kWarp * kEach + e;
      const float v = norm.scale == 0 ? 0 : key_value(key[e], norm.scale < 0);
      space.key[at] = key[e];
      space.z[at] = key[e] == kNoKey ? INFINITY : static_cast<float>(norm.z(v));
    }
    if (!QACT_MUTANT("cuda_short_syncwarp")) __syncwarp();
    zero_ = first_key(0);
    negatives = count_first(space.key, [&](uint32_t k) { return k < zero_; });
    const uint32_t bound[2] = {first_key(-quantile.bound), first_key(quantile.bound)};
    const LevelRule levels = rule();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      level[e] = 0;
      if (!valid[e]) continue;
      const uint32_t own = order_of_z(x[e]);
      const uint32_t upto = count_first(space.key, [&](uint32_t k) {
        return QACT_MUTANT("cuda_short_ties") ? k < own : k <= own;
      });
      const bool above = positive(e), past = own >= (above ? bound[1] : bound[0]);
      level[e] = levels.level(above, int64_t{upto} - (above ? negatives : 0) + past);
      sum += level[e];
      square += level[e] * level[e];
    }
    sum = sum_warp(sum);
    square = sum_warp(square);
  }
};

// The density of a context's values and of both bounds, by the warp that has ranked it: from a grid
// of a quarter bandwidth, or, where that would be too long, pair by pair.
template <int kEach>
class ShortDensity {
 public:
  __device__ explicit ShortDensity(const ShortContext<kEach>& of)
      : of_(of), inverse_(static_cast<float>(1 / of.quantile.bandwidth)) {
    const LevelRule rule = of.rule();
    weight_[0] = static_cast<float>(rule.weight(false));
    weight_[1] = static_cast<float>(rule.weight(true));
    if constexpr (Space::kNodes > 0) place();
  }

  __device__ float operator()(float z) const {
    if constexpr (Space::kNodes > 0) {
      if (grid_) {
        const float at = (z - of_.space.z[0]) * (inverse_ * kPerBandwidth);
        const int node = min(static_cast<int>(at), Space::kNodes - 2);
        const float* f = of_.space.density + node;
        return f[0] + (f[1] - f[0]) * (at - static_cast<float>(node));
      }
    }
    return by_pairs(z);
  }

 private:
  using Space = ShortSpace<kEach>;
  static constexpr float kPeak = 0.3989422804f;  // of the normal density
  const ShortContext<kEach>& of_;
  float inverse_, weight_[2];
  bool grid_ = false;

  __device__ float by_pairs(float at) const {
    const uint32_t values = static_cast<uint32_t>(of_.plan.values);
    const float bound = static_cast<float>(of_.quantile.bound);
    const auto kernel = [&](float z) {
      const float u = (at - z) * inverse_;
      return __expf(-0.5f * u * u);
    };
    float sum[2] = {kernel(-bound), kernel(bound)};
    for (uint32_t j = 0; j < of_.negatives; ++j) sum[0] += kernel(of_.space.z[j]);
    for (uint32_t j = of_.negatives; j < values; ++j) sum[1] += kernel(of_.space.z[j]);
    return (weight_[0] * sum[0] + weight_[1] * sum[1]) * (kPeak * inverse_);
  }

  // Every value's weight on the two nodes beside it, in whole numbers, so that the order of
  // additions does not matter; then the density of all nodes.
  __device__ void place() {
    constexpr float kUnits = 1 << 20;
    Space& space = of_.space;
    const float bandwidth = static_cast<float>(of_.quantile.bandwidth);
    const float bound = static_cast<float>(of_.quantile.bound);
    const float low = space.z[0], high = space.z[max(static_cast<int>(of_.plan.values), 1) - 1];
    const float nodes = (high - low) * inverse_ * kPerBandwidth + 2, reach = 5 * bandwidth;
    grid_ = nodes < Space::kNodes && low - reach > -bound && high + reach < bound;
    if (!grid_) return;
    const int lane = threadIdx.x % kWarp, last = static_cast<int>(nodes);
    for (int i = lane; i <= last; i += kWarp) space.share[0][i] = space.share[1][i] = 0;
    __syncwarp();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (!of_.valid[e]) continue;
      const float at = (of_.z[e] - low) * (inverse_ * kPerBandwidth);
      const int node = min(static_cast<int>(at), Space::kNodes - 2);
      const uint32_t upper =
          static_cast<uint32_t>(fmaxf(at - static_cast<float>(node), 0.0f) * kUnits);
      uint32_t* share = space.share[of_.positive(e)] + node;
      atomicAdd(&share[0], static_cast<uint32_t>(kUnits) - upper);
      atomicAdd(&share[1], upper);
    }
    __syncwarp();
    for (int i = lane; i <= last + 2 * kReach; i += kWarp) {
      const int node = i - kReach;
      const bool inside = node >= 0 && node <= last;
      space.mass[i] = inside ? weight_[0] * static_cast<float>(space.share[0][node]) +
                                   weight_[1] * static_cast<float>(space.share[1][node])
                             : 0;
    }
    __syncwarp();
    for (int i = lane; i <= last; i += kWarp) {
      float sum = 0;
#pragma unroll
      for (int k = 0; k <= 2 * kReach; ++k) sum += kTaps.at[k] * space.mass[i + k];
      space.density[i] = sum * (kPerBandwidth * inverse_ / kUnits);
    }
    __syncwarp();
  }
};

// The running context's counts.
template <int kEach>
__device__ inline void count_short(const ShortContext<kEach>& of, int64_t* context) {
  auto& space = of.space;
  for (int i = threadIdx.x % kWarp; i < kContextBins; i += kWarp) space.context[i] = 0;
  __syncwarp();
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (!of.valid[e] || of.plan.how == kNotFinite) continue;
    const float z = of.z[e];
    const int equals = count_first(space.z, [z](float v) { return v <= z; }) -
                       count_first(space.z, [z](float v) { return v < z; });
    const int64_t of_its_sign = of.positive(e) ? of.plan.values - of.negatives : of.negatives;
    const bool tie = context_is_tie(equals - QACT_MUTANT("cuda_short_tie"), of_its_sign);
    atomicAdd(&space.context[tie ? context_tie_bin(z) : context_bin(z)], 1u);
  }
  __syncwarp();
  for (int i = threadIdx.x % kWarp; i < kContextBins; i += kWarp) {
    context[i] = space.context[i] * kContextUnit;
  }
}

template <class T, int kEach>
__global__ void __launch_bounds__(kShortWarps* kWarp)
    forward_short(SmallCall<T> call, SolveCall solve, uint32_t contexts) {
  __shared__ Room<ShortSpace<kEach>, kShortWarps> room;
  const uint32_t warp = threadIdx.x / kWarp, context = blockIdx.x * kShortWarps + warp;
  if (context >= contexts) return;
  const ShortContext<kEach> ranked(call.x.of(context), solve, context, room.array()[warp]);
  const LayerStats stats = norm_stats(solve, ranked.plan, ranked.sum, ranked.square);
  const OutNorm norm(solve, solve.affine_out(context), stats);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const uint32_t i = ranked.index(e);
    if (i >= ranked.n) continue;
    write_value(call, solve, context, i, ranked.x[e], {ranked.level[e], ranked.level[e]}, norm);
  }
  if (call.plain && call.density.data) {
    const ShortDensity<kEach> density(ranked);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const uint32_t i = ranked.index(e);
      const float x = ranked.x[e];
      if (i >= ranked.n) continue;
      const float f = isnan(x) ? x : isinf(x) ? 0.0f : density(ranked.z[e]);
      call.density.at(context, i) = from_float<T>(f);
    }
  }
  if (solve.context) count_short(ranked, solve.context_of(context));
  if (threadIdx.x % kWarp == 0) solve.put_stats(context, stats);
}

}  // namespace qact::core::cuda
