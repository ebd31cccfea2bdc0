// The kernels of the fused layer's backward pass. Those over columns are in
// backward_columns.cuh.
#pragma once

#include "qact/core/cuda/block.cuh"
#include "qact/core/cuda/chain.cuh"
#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/tensor.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kGradThreads = 256;

// k is the level, f the density in the table's unit, d = x - centre.
struct GradSums {  // in the order of ThreadSums
  double dy = 0, dy_k = 0, f_dy = 0, f_dy_d = 0, f = 0, f_k = 0, f_d = 0, f_k_d = 0;

  template <class Real>
  __device__ static GradSums from(const Real* s) {
    return {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]};
  }
  __device__ static GradSums merge(const GradSums& a, const GradSums& b) {
    return {a.dy + b.dy, a.dy_k + b.dy_k, a.f_dy + b.f_dy, a.f_dy_d + b.f_dy_d,
            a.f + b.f,   a.f_k + b.f_k,   a.f_d + b.f_d,   a.f_k_d + b.f_k_d};
  }
};

// The same over the values of one thread, a few hundred at most, which floats can hold.
struct ThreadSums {
  static constexpr int kCount = 8;
  float sum[kCount] = {};

  __device__ void add(float g, float k, float density, float d) {
    const float fg = density * g, fd = density * d;
    sum[0] += g;
    sum[1] += g * k;
    sum[2] += fg;
    sum[3] += fg * d;
    sum[4] += density;
    sum[5] += density * k;
    sum[6] += fd;
    sum[7] += fd * k;
  }
};

// dx = f * (dy * dy_scale + k * k_scale + shift) + d * d_scale + d_shift
struct GradMap {
  float dy_scale, k_scale, shift, d_scale, d_shift;

  __device__ float operator()(float g, float k, float density, float d) const {
    return density * (g * dy_scale + k * k_scale + shift) + (d * d_scale + d_shift);
  }
};

// The weights of a channel's two norms.
struct GradWeights {
  double in, out;
};

struct GradSolve {
  int levels;
  double eps, n;
  uint32_t channels;
  ChannelVector weight_in, weight_out;
  const LayerStats* stats;
  const int32_t* density;
  float* grad_affine;  // [4][channels]

  __device__ const int32_t* nodes_of(uint32_t c) const {
    return density + int64_t{c} * kDensityNodes;
  }
  __device__ GradWeights weights(uint32_t c) const {
    return {weight_in.at(c, 1.0), weight_out.at(c, 1.0)};
  }
  __device__ GradMap operator()(uint32_t c, const GradSums& sums, bool keep) const {
    return (*this)(c, weights(c), sums, keep);
  }
  __device__ GradMap operator()(uint32_t c, const GradWeights& weight, const GradSums& sums,
                                bool keep) const {
    const LayerStats& s = stats[c];
    const double g1 = weight.in, g2 = weight.out;
    const double inv1 = 1 / sqrt(s.var_in + eps), inv2 = 1 / sqrt(s.var_out + eps);
    // xhat = (d + rest) * inv1; yhat = k * slope + level0.
    const double rest = static_cast<double>(static_cast<float>(s.mean_in)) - s.mean_in;
    const double slope = inv2 / levels, level0 = -s.mean_out * inv2;
    const double unit = s.density_unit;
    const double share = 1 / n, unit_share = unit * share;
    const double dy = sums.dy * share;
    const double dy_yhat = slope * (sums.dy_k * share) + level0 * dy;
    const double f_dy = sums.f_dy * unit_share;
    const double f_dy_xhat = inv1 * (sums.f_dy_d * unit_share + rest * f_dy);
    const double f = sums.f * unit_share, f_k = sums.f_k * unit_share;
    const double f_yhat = slope * f_k + level0 * f;
    const double f_xhat = inv1 * (sums.f_d * unit_share + rest * f);
    const double f_k_xhat = inv1 * (sums.f_k_d * unit_share + rest * f_k);
    const double f_yhat_xhat = slope * f_k_xhat + level0 * f_xhat;
    const double dz = g2 * inv2 * (f_dy - dy * f - dy_yhat * f_yhat);
    const double dz_xhat = g2 * inv2 * (f_dy_xhat - dy * f_xhat - dy_yhat * f_yhat_xhat);
    if (keep) {
      grad_affine[c] = static_cast<float>(n * dz_xhat);
      grad_affine[channels + c] = static_cast<float>(n * dz);
      grad_affine[2 * channels + c] = static_cast<float>(n * dy_yhat);
      grad_affine[3 * channels + c] = static_cast<float>(n * dy);
    }
    const double inner = g1 * inv1, both = inner * g2 * inv2 * unit;
    return {static_cast<float>(both), static_cast<float>(-both * slope * dy_yhat),
            static_cast<float>(-both * (dy + level0 * dy_yhat)),
            static_cast<float>(-inner * inv1 * dz_xhat),
            static_cast<float>(
                -inner * ((QACT_MUTANT("cuda_grad_x_mean_dz") ? 0 : dz) + rest * inv1 * dz_xhat))};
  }
};

template <class T>
struct GradCall {
  const T *dy, *x;
  T* dx;
  const uint8_t* level;
  Layout dy_layout, x_layout, dx_layout;
  GradSolve solve;
};

// What one pass over the tensor reads.
template <class T, int kSize>
struct Gradient {
  Pack<T, kSize> dy, x;
  Pack<uint8_t, kSize> level;
};

__device__ inline void load_nodes(const int32_t* from, int32_t* nodes) {
  for (int i = threadIdx.x; i < kDensityNodes; i += blockDim.x) nodes[i] = from[i];
}

// By one warp: the sums of a channel's parts, for every lane.
__device__ inline GradSums merge_sums(const GradSums* parts, uint32_t count) {
  GradSums all;
  for (uint32_t i = threadIdx.x % kWarp; i < count - QACT_MUTANT("cuda_grad_sums_parts");
       i += kWarp)
    all = GradSums::merge(all, parts[i]);
  for (int mask = kWarp / 2; mask > 0; mask /= 2)
    all = GradSums::merge(all, shuffle_xor(all, mask));
  return all;
}

// visit(dy, x, level, image, place) for a block's packs of one channel.
template <int kSize, class T, class Visit>
__device__ inline void for_each_gradient(const GradCall<T>& call, const Extent& extent,
                                         uint32_t channel, const Visit& visit) {
  for_each_pack<kSize>(extent, blockIdx.x, [&](uint32_t image, uint32_t place, uint32_t index) {
    const auto dy = load<kSize>(call.dy + row_offset(call.dy_layout, channel, image, place));
    const auto x = load<kSize>(call.x + row_offset(call.x_layout, channel, image, place));
    const auto level = load<kSize>(call.level + static_cast<int64_t>(channel) * extent.n + index);
    visit(dy, x, level, image, place);
  });
}

template <class T, int kSize>
__global__ void __launch_bounds__(kGradThreads)
    sum_rows(GradCall<T> call, Extent extent, GradSums* parts) {
  __shared__ int32_t nodes[kDensityNodes];
  __shared__ Room<GradSums, kGradThreads / kWarp> shared_room;
  GradSums* const shared = shared_room.array();
  let_next_start();
  const uint32_t channel = blockIdx.y;
  load_nodes(call.solve.nodes_of(channel), nodes);
  const DensityAt density(call.solve.stats[channel]);
  __syncthreads();
  ThreadSums sums;
  for_each_gradient<kSize>(call, extent, channel,
                           [&](const Pack<T, kSize>& dy, const Pack<T, kSize>& x,
                               const Pack<uint8_t, kSize>& level, uint32_t, uint32_t) {
#pragma unroll
                             for (int i = 0; i < kSize; ++i) {
                               const float d = to_float(x.v[i]) - density.centre;
                               sums.add(to_float(dy.v[i]), level.v[i], density(d, nodes), d);
                             }
                           });
  const GradSums all = merge_columns<1>(GradSums::from(sums.sum), shared);
  if (threadIdx.x == 0) parts[channel * extent.parts + blockIdx.x] = all;
}

template <class T, int kSize>
__global__ void __launch_bounds__(kGradThreads)
    apply_rows(GradCall<T> call, Extent extent, const GradSums* parts) {
  __shared__ int32_t nodes[kDensityNodes];
  __shared__ Room<GradMap> shared_room;
  GradMap& shared = shared_room.value();
  const uint32_t channel = blockIdx.y;
  load_nodes(call.solve.nodes_of(channel), nodes);
  const DensityAt density(call.solve.stats[channel]);
  wait_for_previous();
  if (threadIdx.x < kWarp) {
    const GradSums sums =
        merge_sums(parts + static_cast<int64_t>(channel) * extent.parts, extent.parts);
    if (threadIdx.x == 0) shared = call.solve(channel, sums, blockIdx.x == 0);
  }
  __syncthreads();
  const GradMap map = shared;
  for_each_gradient<kSize>(
      call, extent, channel,
      [&](const Pack<T, kSize>& dy, const Pack<T, kSize>& x, const Pack<uint8_t, kSize>& level,
          uint32_t image, uint32_t place) {
        Pack<T, kSize> dx;
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          const float d = to_float(x.v[i]) - density.centre;
          dx.v[i] = from_float<T>(map(to_float(dy.v[i]), level.v[i], density(d, nodes), d));
        }
        *reinterpret_cast<Pack<T, kSize>*>(call.dx +
                                           row_offset(call.dx_layout, channel, image, place)) = dx;
      });
}

}  // namespace qact::core::cuda
