// What one block settles for one channel between the passes over the tensor: the level of
// every bin, the thresholds where bins do not tell, the outer norm, density and context.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/refine.cuh"

namespace qact::core::cuda {

// Everything that the last pass of the forward direction needs of a channel.
template <class Limit>
struct LevelMap {
  alignas(16) uint8_t level[Limit::kBins];  // by bin
  BinMap<float> map;
  float out_scale, out_shift;
  How how;
  bool descending;
  int32_t roots;
  uint32_t heavy[Limit::kBins / 32 + 1];  // by bin: a root tells its levels
  uint32_t threshold[Limit::kLevels + 1];
  int16_t root_bin[Limit::kRoots];
  uint8_t root_base[Limit::kRoots], root_last[Limit::kRoots];
};

// kMost: the nodes of a table of density.
template <class Limit, int kMost>
struct SolveSpace {
  using Limits = Limit;
  static constexpr int kNodes = kMost;
  uint32_t before[Limit::kBins + 1];
  union {  // one after the other
    RefineSpace<Limit> refine;
    DensitySpace<kMost> density;
  };
  ChannelPlan plan;
};

// What a solve is for, and where its results go.
struct SolveCall {
  Quantile quantile;
  NormIn norm_in;
  double eps = 0;
  ChannelVector weight_out, bias_out;
  int32_t* density = nullptr;  // optional
  double* stats = nullptr;
  int64_t* context = nullptr;  // optional
  uint32_t* keys = nullptr;    // optional: [channels][n], room for exact levels of long channels
};

// The number of thresholds in (base, last] at or below the key, plus base.
__device__ inline int level_among(const uint32_t* threshold, int base, int last, uint32_t key) {
  int begin = base + 1, end = last + 1;
  while (begin < end) {
    const int middle = (begin + end) / 2;
    if (threshold[middle] <= key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin - 1;
}

// The smallest key whose bin is at least `bin`.
__device__ inline uint32_t first_key(const BinMap<float>& map, int bin, uint32_t low, uint32_t high,
                                     bool descending) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (bin_of(key_value(middle, descending), map) >= bin) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Levels at the middle of each bin's mass, as the CPU has them; heavy bins become roots.
// Returns how many.
template <class Space, class Map>
__device__ inline int settle_bins(Space& space, const LevelRule& rule, const Quantile& quantile,
                                  Map& out) {
  const BinPlan<float>& plan = space.plan.bins;
  const int32_t negatives = static_cast<int32_t>(space.before[plan.split]);
  const bool descending = space.plan.norm.scale < 0;
  const float low = descending ? space.plan.summary.high : space.plan.summary.low;
  const float high = descending ? space.plan.summary.low : space.plan.summary.high;
  int past[2];
  for (int side = 0; side < 2; ++side) {
    const double begin = side ? plan.split : 0, end = side ? plan.bins : plan.split;
    const double anchor = side ? quantile.bound : -quantile.bound;
    const double at = plan.z_width > 0 ? floor((anchor - plan.z_first) / plan.z_width) + 1
                                       : (anchor <= plan.z_first ? begin : end);
    past[side] = static_cast<int>(fmin(fmax(at, begin), end));
  }
  for (int i = threadIdx.x; i <= Space::Limits::kBins / 32; i += blockDim.x) out.heavy[i] = 0;
  for (int b = plan.bins + threadIdx.x; b < Space::Limits::kBins; b += blockDim.x) out.level[b] = 0;
  __syncthreads();
  const int each = (plan.bins + blockDim.x - 1) / blockDim.x;
  const int begin = min(plan.bins, static_cast<int>(threadIdx.x) * each);
  const int end = min(plan.bins, begin + each);
  unsigned long long sum = 0, square = 0;
  uint32_t found = 0;
  uint32_t limit[2];
  float base[2], gain[2];
  for (int side = 0; side < 2; ++side) {
    limit[side] = plan.bins == 1 ? ~0u : static_cast<uint32_t>(rule.half_level(side));
    base[side] =
        side ? static_cast<float>((quantile.levels + 1) * (1 - quantile.positive_share)) : 0.0f;
    gain[side] = static_cast<float>((quantile.levels + 1) * rule.weight(side) / 2);
  }
  const auto level_upto = [&](int b, int32_t upto) {
    const bool positive = b >= plan.split;
    return rule.level(positive, upto + (b >= past[positive]) - (positive ? negatives : 0));
  };
  const bool exact = space.plan.exact && plan.bins > 1;
  const auto is_heavy = [&](int b, int32_t before, int32_t count) {
    if (exact) return count > 0 && level_upto(b, before + 1) != level_upto(b, before + count);
    return static_cast<uint32_t>(count) > limit[b >= plan.split];
  };
  for (int b = begin; b < end; ++b) {
    const int32_t before = static_cast<int32_t>(space.before[b]);
    const int32_t count = static_cast<int32_t>(space.before[b + 1]) - before;
    const bool positive = b >= plan.split;
    const int rank = (b >= past[positive]) - (positive ? negatives : 0);
    if (is_heavy(b, before, count)) {
      ++found;
      continue;
    }
    const float middle = static_cast<float>((before + rank) * 2 + count);
    int level = min(static_cast<int>(__fadd_rn(__fmul_rn(middle, gain[positive]), base[positive])),
                    quantile.levels);
    if (exact || plan.bins == 1) level = level_upto(b, before + count);
    out.level[b] = static_cast<uint8_t>(level);
    sum += static_cast<unsigned long long>(count) * level;
    square += static_cast<unsigned long long>(count) * level * level;
  }
  sum = sum_warp(sum);
  square = sum_warp(square);
  if (threadIdx.x % kWarp == 0) {
    space.refine.warp_sum[threadIdx.x / kWarp] = sum;
    space.refine.warp_square[threadIdx.x / kWarp] = square;
  }
  uint32_t total = 0;
  uint32_t at = scan_block(found, space.refine.scan, total);
  if (threadIdx.x == 0) {
    for (uint32_t w = 0; w < blockDim.x / kWarp; ++w) {
      space.refine.level_sum += space.refine.warp_sum[w];
      space.refine.square_sum += space.refine.warp_square[w];
    }
  }
  for (int b = begin; b < end && found > 0; ++b) {
    const uint32_t before = space.before[b], count = space.before[b + 1] - before;
    if (!is_heavy(b, before, count)) continue;
    --found;
    const bool positive = b >= plan.split;
    Root root;
    root.lo =
        first_key(plan.map, b, order_key(low, descending), order_key(high, descending), descending);
    root.hi =
        b + 1 == plan.bins
            ? order_key(high, descending)
            : first_key(plan.map, b + 1, root.lo, order_key(high, descending), descending) - 1;
    root.before = before;
    root.count = count;
    root.bin = b;
    root.below = -1;
    root.positive = positive;
    root.past_bound = plan.centre(b) >= (positive ? quantile.bound : -quantile.bound);
    const Ranking ranking{rule, negatives};
    root.last = root.base = static_cast<int16_t>(ranking.level(root, before + count));
    space.refine.roots[at++] = root;
    out.level[b] = 0;
    atomicOr(&out.heavy[b / 32], 1u << (b % 32));
  }
  __syncthreads();
  return static_cast<int>(total);
}

// The smallest float x with z(x) >= level, in the order of z.
__device__ inline uint32_t key_of_z(const Norm& norm, double z) {
  const bool descending = norm.scale < 0;
  const double wanted = norm.x(z);
  float x = static_cast<float>(wanted);
  if (descending ? x > wanted : x < wanted) x = nextafterf(x, descending ? -INFINITY : INFINITY);
  return order_key(x, descending);
}

// A channel without bins: four roots, by sign and by the bound. Returns how many hold
// values; `negatives` counts the values of z < 0.
template <class Space, class T>
__device__ inline int make_sides(Space& space, const Values<T>& values, const Quantile& quantile,
                                 int64_t& negatives) {
  const Norm& norm = space.plan.norm;
  const bool descending = norm.scale < 0;
  auto& refine = space.refine;
  if (threadIdx.x == 0) {
    refine.lo[0][0] = 0;
    refine.lo[0][1] = key_of_z(norm, -quantile.bound);
    refine.lo[0][2] = key_of_z(norm, 0);
    refine.lo[0][3] = key_of_z(norm, quantile.bound);
    for (int side = 0; side < 4; ++side) refine.cell[side] = 0;
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
    const float x = values[i];
    if (!isnan(x))
      atomicAdd(&refine.cell[interval_of(refine.lo[0], 4, order_key(x, descending))], 1u);
  }
  __syncthreads();
  negatives = static_cast<int64_t>(refine.cell[0]) + refine.cell[1];
  const LevelRule rule(quantile, negatives, space.plan.values - negatives);
  const float low = descending ? space.plan.summary.high : space.plan.summary.low;
  const float high = descending ? space.plan.summary.low : space.plan.summary.high;
  int roots = 0, below = 0;
  uint32_t before = 0;
  for (int side = 0; side < 4; ++side) {
    const uint32_t count = refine.cell[side];
    if (count == 0) continue;
    Root root;
    root.lo = max(refine.lo[0][side], order_key(low, descending));
    root.hi = order_key(high, descending);
    if (side < 3) root.hi = min(root.hi, refine.lo[0][side + 1] - 1);
    root.before = before;
    root.count = count;
    root.bin = 0;
    root.below = static_cast<int16_t>(below);
    root.positive = side >= 2;
    root.past_bound = side % 2;
    before += count;
    below = Ranking{rule, negatives}.level(root, before);
    if (threadIdx.x == 0) refine.roots[roots] = root;
    ++roots;
  }
  __syncthreads();
  return roots;
}

// Equal bins of z over the thresholds' range, for the density of a channel without bins.
template <class Space, class T>
__device__ inline EvenCounts count_evenly(Space& space, const Values<T>& values, double bandwidth) {
  constexpr int kBins = Space::Limits::kBins - 32;
  const Norm& norm = space.plan.norm;
  // Tails are cut where no table would reach: well beyond the first and the last threshold.
  const bool descending = norm.scale < 0;
  const auto z_of = [&](uint32_t key) { return norm.z(key_value(key, descending)); };
  int reached = Space::Limits::kLevels;
  while (reached > 1 && space.refine.threshold[reached] == kNoKey) --reached;
  const double tail = 8 * bandwidth;
  const double a = norm.z(space.plan.summary.low), b = norm.z(space.plan.summary.high);
  const double low = fmax(fmax(fmin(a, b), z_of(space.refine.threshold[1]) - tail), -1e30);
  const double high = fmin(fmin(fmax(a, b), z_of(space.refine.threshold[reached]) + tail), 1e30);
  EvenCounts counts;
  counts.width = fmax((high - low) / (kBins - 2), 1e-30);
  const bool zero_inside = low <= 0 && high >= 0;
  counts.first = zero_inside ? floor(low / counts.width) * counts.width : low;
  counts.bins = kBins;
  counts.split =
      zero_inside ? static_cast<int>(rint(-counts.first / counts.width)) : (low >= 0 ? 0 : kBins);
  counts.before = space.before;
  for (int i = threadIdx.x; i <= kBins; i += blockDim.x) space.before[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
    const double z = norm.z(values[i]);
    if (!isfinite(z)) continue;
    int bin =
        static_cast<int>(fmin(fmax(floor((z - counts.first) / counts.width), 0.0), kBins - 1.0));
    if (z < 0) bin = min(bin, counts.split - 1);
    if (z >= 0) bin = max(bin, counts.split);
    atomicAdd(&space.before[min(max(bin, 0), kBins - 1)], 1u);
  }
  __syncthreads();
  scan_array(space.before, kBins + 1, space.refine.scan);
  return counts;
}

// The kept context: from the bins, each spread evenly, or value by value.
template <class Space, class T>
__device__ inline void write_context(Space& space, const Values<T>& values, int64_t* row) {
  const ChannelPlan& plan = space.plan;
  uint32_t* below = space.refine.cell;
  __syncthreads();
  if (plan.how == kBinned && !plan.exact) {
    const BinPlan<float>& bins = plan.bins;
    const uint32_t total = space.before[bins.bins];
    const float offset = static_cast<float>(-bins.z_first / bins.z_width);
    const float scale = static_cast<float>(1 / bins.z_width);
    for (int i = threadIdx.x; i <= kContextBins; i += blockDim.x) {
      const float edge = context_edge(i);
      if (i == 0) {
        below[i] = 0;
      } else if (!(bins.z_width > 0)) {
        below[i] = edge > bins.z_first ? total : 0;
      } else {
        const float t = fminf(fmaxf(__fadd_rn(__fmul_rn(edge, scale), offset), 0.0f),
                              static_cast<float>(bins.bins));
        const int bin = static_cast<int>(t);
        const uint32_t count = bin < bins.bins ? space.before[bin + 1] - space.before[bin] : 0;
        const float part = __fmul_rn(static_cast<float>(count), t - bin);
        below[i] = space.before[bin] + static_cast<uint32_t>(part + 0.5f);
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kContextBins; i += blockDim.x) {
      row[i] = (static_cast<int64_t>(below[i + 1]) - below[i]) * kContextUnit;
    }
    return;
  }
  for (int i = threadIdx.x; i < kContextBins; i += blockDim.x) below[i] = 0;
  __syncthreads();
  if (plan.how != kNotFinite) {
    for (uint32_t i = threadIdx.x; i < values.n; i += blockDim.x) {
      const float z = static_cast<float>(plan.norm.z(values[i]));
      if (!isnan(z)) atomicAdd(&below[context_bin(z)], 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kContextBins; i += blockDim.x) row[i] = below[i] * kContextUnit;
}

// space.plan is made and, if it has bins, space.before holds their prefix sums.
template <class T, class Space, class Map>
__device__ inline void solve_channel(const SolveCall& call, const Values<T>& values,
                                     uint32_t channel, Space& space, Map& out) {
  const Quantile& quantile = call.quantile;
  const ChannelPlan& plan = space.plan;
  const bool descending = plan.norm.scale < 0;
  if (threadIdx.x == 0) space.refine.level_sum = space.refine.square_sum = 0;
  constexpr int kLevels = Space::Limits::kLevels;
  for (int k = threadIdx.x; k <= kLevels; k += blockDim.x) space.refine.threshold[k] = kNoKey;
  __syncthreads();

  int64_t negatives = 0;
  int roots = 0;
  if (plan.how == kBinned) {
    negatives = space.before[plan.bins.split];
    const LevelRule rule(quantile, negatives, plan.values - negatives);
    roots = settle_bins(space, rule, quantile, out);
    if (roots > 0) {
      Keys<T> keys(values, descending);
      if (plan.exact && call.keys) {
        keys = keep_heavy(values, plan.bins.map, out.heavy, descending,
                          call.keys + static_cast<int64_t>(channel) * values.n, space.refine);
      }
      refine(keys, Ranking{rule, negatives}, space.refine, roots, 0);
    }
  } else if (plan.how == kExact) {
    const int sides = make_sides(space, values, quantile, negatives);
    const LevelRule rule(quantile, negatives, plan.values - negatives);
    refine(Keys<T>(values, descending), Ranking{rule, negatives}, space.refine, sides,
           static_cast<uint32_t>(plan.values));
  }
  __syncthreads();
  for (int k = threadIdx.x; k <= kLevels; k += blockDim.x) {
    out.threshold[k] = space.refine.threshold[k];
  }
  for (int r = threadIdx.x; r < roots; r += blockDim.x) {
    const Root& root = space.refine.roots[r];
    out.root_bin[r] = static_cast<int16_t>(root.bin);
    out.root_base[r] = static_cast<uint8_t>(root.base);
    out.root_last[r] = static_cast<uint8_t>(root.last);
  }

  LayerStats stats{};
  stats.mean_in = call.norm_in.present ? plan.summary.mean : 0;
  stats.var_in = plan.summary.variance;
  const double n = static_cast<double>(values.n), levels = quantile.levels;
  stats.mean_out = static_cast<double>(space.refine.level_sum) / n / levels;
  stats.var_out = fmax(0.0, static_cast<double>(space.refine.square_sum) / n / levels / levels -
                                stats.mean_out * stats.mean_out);
  if (plan.how == kNotFinite) stats.mean_out = stats.var_out = nan("");
  __syncthreads();
  if (threadIdx.x == 0) {
    const double scale = call.weight_out.at(channel, 1.0) / sqrt(stats.var_out + call.eps);
    out.map = plan.bins.map;
    out.how = plan.how;
    out.descending = descending;
    out.roots = roots;
    out.out_scale = static_cast<float>(scale / levels);
    out.out_shift = static_cast<float>(call.bias_out.at(channel, 0.0) - scale * stats.mean_out);
  }
  if (call.context) write_context(space, values, call.context + channel * kContextBins);
  if (call.density) {
    int32_t* nodes = call.density + static_cast<int64_t>(channel) * Space::kNodes;
    const LevelRule rule(quantile, negatives, plan.values - negatives);
    if (plan.how == kNotFinite || plan.values == 0) {
      for (int i = threadIdx.x; i < Space::kNodes; i += blockDim.x) nodes[i] = 0;
    } else {
      EvenCounts counts{space.before, plan.bins.bins, plan.bins.split, plan.bins.z_first,
                        plan.bins.z_width};
      if (plan.how == kExact) counts = count_evenly(space, values, quantile.bandwidth);
      __syncthreads();
      pack_density(counts, rule, quantile, plan.norm, space.density, Space::kNodes, nodes, stats);
    }
  }
  if (threadIdx.x == 0) reinterpret_cast<LayerStats*>(call.stats)[channel] = stats;
}

// The level of a value by its channel's map; `level` is map.level, perhaps in shared memory.
template <class Map>
__device__ inline int level_of(float x, const Map& map, const uint8_t* level,
                               const uint32_t* threshold, int levels) {
  if (map.how == kExact) {
    return level_among(threshold, 0, levels, order_key(x, map.descending));
  }
  const int bin = bin_of(x, map.map);
  if (map.roots == 0 || !(map.heavy[bin / 32] >> (bin % 32) & 1)) return level[bin];
  int begin = 0, end = map.roots;
  while (begin + 1 < end) {
    const int middle = (begin + end) / 2;
    if (map.root_bin[middle] <= bin) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return level_among(map.threshold, map.root_base[begin], map.root_last[begin],
                     order_key(x, map.descending));
}

}  // namespace qact::core::cuda
