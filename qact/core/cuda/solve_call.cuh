// What a solve is for, where its results go, and the outer norm, which follows from the levels.
#pragma once

#include <cstdint>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/cuda/plan.cuh"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cuda {

struct SolveCall {
  Quantile quantile;
  double unit, share;  // 1 / levels, and 1 / (n * levels)
  NormIn norm_in;
  double eps = 0;
  ChannelVector weight_out, bias_out;
  int32_t* table = nullptr;    // optional: a CodeTable of each channel
  int32_t* density = nullptr;  // optional: [channels][kMostNodes], the density by value
  double* stats = nullptr;     // optional
  int64_t* context = nullptr;  // optional
  uint32_t* keys = nullptr;    // optional: [channels][n], room for exact levels of long channels

  SolveCall(const Quantile& of, int64_t n)
      : quantile(of), unit(1.0 / of.levels), share(unit / static_cast<double>(n)) {}

  __device__ Affine affine_out(uint32_t context) const {
    return Affine::of(weight_out, bias_out, norm_in.channels.remainder(context));
  }
  __device__ CodeTable& table_of(uint32_t channel) const {
    return *reinterpret_cast<CodeTable*>(table + int64_t{channel} * kCodeTableWords);
  }
  __device__ void put_stats(uint32_t channel, const LayerStats& of) const {
    if (stats) reinterpret_cast<LayerStats*>(stats)[channel] = of;
  }
  __device__ int64_t* context_of(uint32_t channel) const {
    return context + int64_t{channel} * kContextBins;
  }
};

// What is known of both norms, given the sums of a channel's levels and of their squares.
__device__ inline LayerStats norm_stats(const SolveCall& call, const ChannelPlan& plan, double sum,
                                        double square) {
  LayerStats stats{};
  stats.mean_in = call.norm_in.present ? plan.summary.mean : 0;
  stats.var_in = plan.summary.variance;
  stats.mean_out = sum * call.share;
  stats.var_out =
      fmax(0.0, square * call.share * call.unit * (QACT_MUTANT("cuda_var_out") ? 1.01 : 1) -
                    stats.mean_out * stats.mean_out);
  if (plan.how == kNotFinite) stats.mean_out = stats.var_out = nan("");
  return stats;
}

// y = level * scale + shift
struct OutNorm {
  float scale, shift;

  OutNorm() = default;
  __device__ OutNorm(const SolveCall& call, const Affine& affine, const LayerStats& stats) {
    const double by = affine.weight * rsqrt(stats.var_out + call.eps);
    scale = static_cast<float>(by * call.unit);
    shift = static_cast<float>(affine.bias - by * stats.mean_out);
  }
};

}  // namespace qact::core::cuda
