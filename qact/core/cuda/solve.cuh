// What one block settles for one channel between the passes over the tensor: the level of
// every bin, the thresholds where bins do not tell, the outer norm, density and context.
#pragma once

#include <cstdint>

#include "qact/core/context.h"
#include "qact/core/cuda/settle.cuh"
#include "qact/core/cuda/unbinned.cuh"

namespace qact::core::cuda {

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

}  // namespace qact::core::cuda
