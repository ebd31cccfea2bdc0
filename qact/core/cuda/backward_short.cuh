// The fused layer's backward direction over contexts of very few values, ranked again by a warp
// each: no codes, and the density of each value itself.
#pragma once

#include "qact/core/cuda/backward.cuh"
#include "qact/core/cuda/short.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

template <class T>
struct ShortGrad {
  Values<T> x;
  Results<const T> dy;
  Results<T> dx;
};

template <class T, int kEach>
__global__ void __launch_bounds__(kShortWarps* kWarp)
    backward_short(ShortGrad<T> call, SolveCall solve, GradSolve gradient, uint32_t contexts) {
  __shared__ Room<ShortSpace<kEach>, kShortWarps> room;
  const uint32_t warp = threadIdx.x / kWarp, context = blockIdx.x * kShortWarps + warp;
  if (context >= contexts) return;
  ShortSpace<kEach>& space = room.array()[warp];
  const ShortContext<kEach> ranked(call.x.of(context), solve, context, space);
  const LayerStats stats = norm_stats(solve, ranked.plan, ranked.sum, ranked.square);
  const bool finite = ranked.plan.how != kNotFinite;
  const ShortDensity<kEach> density(ranked);
  const double unit = rsqrt(stats.var_in + solve.norm_in.eps);
  float dy[kEach], f[kEach], xhat[kEach], sums[8] = {};
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const uint32_t i = ranked.index(e);
    dy[e] = f[e] = xhat[e] = 0;
    if (i >= ranked.n) continue;
    dy[e] = to_float(call.dy.at(context, i));
    if (finite) {
      f[e] = density(ranked.z[e]);
      xhat[e] = static_cast<float>((ranked.x[e] - stats.mean_in) * unit);
    }
    const float k = static_cast<float>(ranked.level[e]), f_k = f[e] * k, f_xhat = f[e] * xhat[e];
    sums[0] += dy[e];
    sums[1] += dy[e] * k;
    sums[2] += dy[e] * f[e];
    sums[3] += dy[e] * f_xhat;
    sums[4] += f[e];
    sums[5] += f_k;
    sums[6] += f_xhat;
    sums[7] += f_k * xhat[e];
  }
  double wide[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) wide[i] = sums[i];
  const double sum = spread_sum<8>(wide);
  if (threadIdx.x % (kWarp / 8) == 0) space.sums[spread_index<8>()] = sum;
  if (!QACT_MUTANT("cuda_grad_short_syncwarp")) __syncwarp();
  const double* all = space.sums;
  const double share = gradient.share;
  const CodeMeans means{stats.var_in,   stats.mean_out, stats.var_out, all[4] * share,
                        all[5] * share, all[6] * share, all[7] * share};
  const GradMap map = gradient(context, gradient.weights(context), GradSums::from(all), means,
                               threadIdx.x % kWarp == 0);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const uint32_t i = ranked.index(e);
    if (i >= ranked.n) continue;
    const GradRow row = map.row(f[e], static_cast<float>(ranked.level[e]), xhat[e]);
    call.dx.at(context, i) = from_float<T>(row(dy[e]));
  }
}

}  // namespace qact::core::cuda
