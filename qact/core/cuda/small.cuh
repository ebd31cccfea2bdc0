// Channels short enough for one block each: all passes in one kernel, so that a small layer
// costs one launch. Very short ones are ranked by counting.
#pragma once

#include "qact/core/cuda/forward.cuh"

namespace qact::core::cuda {

// One channel's results in any layout.
template <class T>
struct Results {
  T* data;
  int64_t channel_stride, image_stride, place_stride;
  Divider spatial;

  __device__ T& at(uint32_t channel, uint32_t i) const {
    const uint32_t image = spatial.quotient(i);
    return data[channel * channel_stride + image * image_stride +
                (i - image * spatial.divisor) * place_stride];
  }
};

template <class T>
struct SmallCall {
  Values<T> x;
  int64_t channel_stride;
  Results<T> y;
  Results<uint8_t> level;  // fused layer only
  Results<T> density;      // plain operator only, optional
  bool plain;
};

template <class T>
__device__ inline void write_value(const SmallCall<T>& call, const SolveCall& solve,
                                   uint32_t channel, uint32_t i, float x, int k, float scale,
                                   float shift) {
  if (!call.plain) {
    call.y.at(channel, i) = from_float<T>(k * scale + shift);
    call.level.at(channel, i) = static_cast<uint8_t>(k);
  } else {
    call.y.at(channel, i) = from_float<T>(
        isnan(x) ? x : __fdiv_rn(static_cast<float>(k), static_cast<float>(solve.quantile.levels)));
  }
}

template <class T>
__device__ inline Partial summarise_block(const Values<T>& values, Partial* shared) {
  const float shift = shift_of(values[0]);
  Partial all;
  for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
    const float v = values[i];
    const double d = v - shift;
    all.note(v);
    all.sum += d;
    all.square += d * d;
  }
  return merge_block(all, shared);
}

template <class Limit>
struct SmallSpace {
  SolveSpace<Limit, kDensityNodes> solve;
  LevelMap<Limit> map;
  Partial partial[kThreads / kWarp];
};

template <class T, class Limit, int kBlock>
__global__ void __launch_bounds__(kBlock, 1024 / kBlock)
    forward_small(SmallCall<T> call, SolveCall solve) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& space = *reinterpret_cast<SmallSpace<Limit>*>(memory);
  const uint32_t channel = blockIdx.x;
  Values<T> values = call.x;
  values.data += channel * call.channel_stride;
  const Partial all = summarise_block(values, space.partial);
  if (threadIdx.x == 0) {
    space.solve.plan =
        make_plan(all, shift_of(values[0]), values.n, channel, solve.norm_in, solve.quantile);
  }
  for (int i = threadIdx.x; i <= Limit::kBins; i += blockDim.x) space.solve.before[i] = 0;
  __syncthreads();
  const ChannelPlan& plan = space.solve.plan;
  if (plan.how == kBinned) {
    const BinMap<float> map = plan.bins.map;
    for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
      atomicAdd(&space.solve.before[bin_of(values[i], map)], 1u);
    }
    __syncthreads();
    scan_array(space.solve.before, plan.bins.bins + 1, space.solve.refine.scan);
  }
  solve_channel(solve, values, channel, space.solve, space.map);
  __syncthreads();
  const LevelMap<Limit>& map = space.map;
  for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
    const float x = values[i];
    const int k = map.how == kNotFinite
                      ? 0
                      : level_of(x, map, map.level, map.threshold, solve.quantile.levels);
    write_value(call, solve, channel, i, x, k, map.out_scale, map.out_shift);
  }
}

// Up to kCounted values: thread i ranks value i.
inline constexpr int kCounted = 256;

struct CountedSpace {
  uint32_t key[kCounted];
  float z[kCounted], weight[kCounted + 2];
  uint32_t context[kContextBins];
  ChannelPlan plan;
  uint32_t zero, bound[2];
  DensitySpace<kDensityNodes> density;
  Partial partial[kCounted / kWarp];
};

struct LevelSums {
  unsigned long long negatives = 0, level = 0, square = 0;
  float low = INFINITY, high = -INFINITY;

  __device__ static LevelSums merge(const LevelSums& a, const LevelSums& b) {
    LevelSums out;
    out.negatives = a.negatives + b.negatives;
    out.level = a.level + b.level;
    out.square = a.square + b.square;
    out.low = fminf(a.low, b.low);
    out.high = fmaxf(a.high, b.high);
    return out;
  }
};

// sum_j w_j phi((at - z_j) / h) / h over the values and both bounds.
__device__ inline float direct_density(const CountedSpace& space, uint32_t n, float at,
                                       const Quantile& quantile) {
  const float inverse = static_cast<float>(1 / quantile.bandwidth);
  const float bound = static_cast<float>(quantile.bound);
  float sum = 0;
  const auto add = [&](float z, float weight) {
    const float u = (at - z) * inverse;
    sum += weight * __expf(-0.5f * u * u);
  };
  for (uint32_t j = 0; j < n; ++j) {
    if (isfinite(space.z[j])) add(space.z[j], space.weight[j]);
  }
  add(-bound, space.weight[kCounted]);
  add(bound, space.weight[kCounted + 1]);
  return sum * 0.3989422804f * inverse;
}

template <class T>
__global__ void __launch_bounds__(kCounted) forward_counted(SmallCall<T> call, SolveCall solve) {
  __shared__ Room<CountedSpace> space_room;
  CountedSpace& space = space_room.value();
  __shared__ Room<LevelSums, kCounted / kWarp> sums_shared_room;
  LevelSums* const sums_shared = sums_shared_room.array();
  const uint32_t channel = blockIdx.x, i = threadIdx.x;
  const Quantile& quantile = solve.quantile;
  Values<T> values = call.x;
  values.data += channel * call.channel_stride;
  const uint32_t n = values.n;
  const bool inside = i < n;
  const float x = inside ? values[i] : NAN;
  const Partial all = summarise_block(values, space.partial);
  if (i == 0) {
    space.plan = make_plan(all, shift_of(values[0]), n, channel, solve.norm_in, quantile);
    const Norm& norm = space.plan.norm;
    if (norm.scale != 0) {
      space.zero = key_of_z(norm, 0);
      space.bound[0] = key_of_z(norm, -quantile.bound);
      space.bound[1] = key_of_z(norm, quantile.bound);
    } else {
      space.zero = norm.shift >= 0 ? 0 : 1;
      space.bound[0] = norm.shift >= -quantile.bound ? 0 : 1;
      space.bound[1] = norm.shift >= quantile.bound ? 0 : 1;
    }
  }
  __syncthreads();
  const ChannelPlan& plan = space.plan;
  const bool valid = inside && !isnan(x);
  const uint32_t key = plan.norm.scale == 0 ? 0 : order_key(x, plan.norm.scale < 0);
  space.key[i] = valid ? key : kNoKey;
  const bool positive = key >= space.zero;
  LevelSums count;
  count.negatives = valid && !positive;
  const uint32_t negatives = static_cast<uint32_t>(merge_block(count, sums_shared).negatives);
  const LevelRule rule(quantile, negatives, plan.values - negatives);
  uint32_t rank = 0;
  for (uint32_t j = 0; j < n; ++j) rank += space.key[j] <= key;
  const bool past = key >= space.bound[positive];
  const int64_t own = static_cast<int64_t>(rank) - (positive ? negatives : 0) + past;
  const int k = valid ? rule.level(positive, own) : 0;
  const float z = static_cast<float>(plan.norm.z(x));
  space.z[i] = valid ? z : INFINITY;
  space.weight[i] = static_cast<float>(rule.weight(positive));
  if (i == 0) {
    space.weight[kCounted] = static_cast<float>(rule.weight(false));
    space.weight[kCounted + 1] = static_cast<float>(rule.weight(true));
  }
  LevelSums sums;
  sums.level = k;
  sums.square = static_cast<unsigned long long>(k) * k;
  const double cumulative = rule.cumulative(positive, own);
  constexpr double kShare = 1.0 / 256;
  if (valid && isfinite(z) && cumulative > kShare) sums.low = z;
  if (valid && isfinite(z) && 1 - cumulative + rule.weight(positive) > kShare) sums.high = z;
  sums = merge_block(sums, sums_shared);

  LayerStats stats{};
  const double count_all = n, levels = quantile.levels;
  stats.mean_in = solve.norm_in.present ? plan.summary.mean : 0;
  stats.var_in = plan.summary.variance;
  stats.mean_out = static_cast<double>(sums.level) / count_all / levels;
  stats.var_out = fmax(0.0, static_cast<double>(sums.square) / count_all / levels / levels -
                                stats.mean_out * stats.mean_out);
  if (plan.how == kNotFinite) stats.mean_out = stats.var_out = nan("");
  const double scale = solve.weight_out.at(channel, 1.0) / sqrt(stats.var_out + solve.eps);
  if (inside) {
    write_value(call, solve, channel, i, x, k, static_cast<float>(scale / levels),
                static_cast<float>(solve.bias_out.at(channel, 0.0) - scale * stats.mean_out));
    if (call.plain && call.density.data) {
      const float f = isnan(x) ? x : (isinf(x) ? 0.0f : direct_density(space, n, z, quantile));
      call.density.at(channel, i) = from_float<T>(f);
    }
  }
  if (solve.context) {
    space.context[i] = 0;
    __syncthreads();
    if (valid && plan.how != kNotFinite) atomicAdd(&space.context[context_bin(z)], 1u);
    __syncthreads();
    solve.context[channel * kContextBins + i] = space.context[i] * kContextUnit;
  }
  if (solve.density && !call.plain) {
    int32_t* nodes = solve.density + channel * kDensityNodes;
    if (plan.how == kNotFinite) {
      nodes[i] = 0;
    } else {
      const double a = plan.norm.z(all.low), b = plan.norm.z(all.high);
      DensityRange range{fmin(a, b), fmax(a, b), false};
      const double h = quantile.bandwidth;
      if ((range.high - range.low) / h * kPerBandwidth + 8 > kDensityNodes) {
        constexpr double kFalloff = 4, kMost = 1000;
        const double low = fmax(range.low, sums.low - kFalloff * h);
        const double high = fmin(fmin(range.high, sums.high + kFalloff * h), low + kMost * h);
        range = {low, high, low > range.low || high < range.high};
      }
      const DensityGrid grid(range, h);
      for (int node = i; node < grid.kept; node += blockDim.x) {
        const float at = static_cast<float>((grid.first + node * grid.step()) * grid.spacing);
        float density = direct_density(space, n, at, quantile);
        if (range.clipped && node == 0) density = lone_density(rule.weight(range.low >= 0), h);
        if (range.clipped && node == grid.kept - 1) {
          density = lone_density(rule.weight(range.high >= 0), h);
        }
        space.density.node[node] = density;
      }
      __syncthreads();
      pack_nodes(space.density, grid.kept, grid.first * grid.spacing, grid.spacing * grid.step(),
                 plan.norm, nodes, stats);
    }
  }
  if (solve.stats && i == 0) reinterpret_cast<LayerStats*>(solve.stats)[channel] = stats;
}

}  // namespace qact::core::cuda
