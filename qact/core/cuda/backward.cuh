// The kernels of the fused layer's backward pass: one adds up the output's gradient, one writes,
// and both work from codes. Those over columns are in backward_columns.cuh.
#pragma once

#include "qact/core/codes.h"
#include "qact/core/cuda/block.cuh"
#include "qact/core/cuda/chain.cuh"
#include "qact/core/cuda/plan.cuh"
#include "qact/core/cuda/tensor.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kGradThreads = 256;

// k is the level, f the density.
struct GradSums {  // in the order of ThreadSums
  double dy = 0, dy_k = 0, f_dy = 0, f_dy_xhat = 0;

  template <class Real>
  __device__ static GradSums from(const Real* s) {
    return {s[0], s[1], s[2], s[3]};
  }
  __device__ static GradSums merge(const GradSums& a, const GradSums& b) {
    return {a.dy + b.dy, a.dy_k + b.dy_k, a.f_dy + b.f_dy, a.f_dy_xhat + b.f_dy_xhat};
  }
};

// What the sums need of a code.
struct alignas(16) SumRow {
  float k, f, f_xhat, unused;

  SumRow() = default;
  __device__ SumRow(const CodeTable& table, int code)
      : k(table.level[code]),
        f(table.density[code]),
        f_xhat(f * static_cast<float>(table.input_unit * table.input[code])),
        unused(0) {}
};

// The same over the values of one thread, a few hundred at most, which floats can hold.
struct ThreadSums {
  static constexpr int kCount = 4;
  float sum[kCount] = {};

  __device__ void add(float dy, const SumRow& row) { add(dy, row.k, row.f, row.f_xhat); }
  __device__ void add(float dy, float k, float f, float f_xhat) {
    sum[0] += dy;
    sum[1] += dy * k;
    sum[2] += dy * f;
    sum[3] += dy * f_xhat;
  }
};

// dx = a * dy + b, for each code.
struct alignas(8) GradRow {
  float a, b;

  __device__ float operator()(float dy) const { return a * dy + b; }
};

// a = f * both, b = f * (k * k_scale + shift) + xhat * xhat_scale + xhat_shift
struct GradMap {
  float both, k_scale, shift, xhat_scale, xhat_shift;

  __device__ GradRow row(const CodeTable& table, int code) const {
    return row(table.density[code], table.level[code],
               static_cast<float>(table.input_unit * table.input[code]));
  }
  __device__ GradRow row(float f, float k, float xhat) const {
    return {f * both, f * (k * k_scale + shift) + (xhat * xhat_scale + xhat_shift)};
  }
};

// The weights of a channel's two norms.
struct GradWeights {
  double in, out;
};

// What the solve needs of a context beside the gradient's sums.
struct CodeMeans {
  double var_in, mean_out, var_out, f, f_k, f_xhat, f_k_xhat;  // as in CodeTable

  __device__ static CodeMeans of(const CodeTable& t) {
    return {t.var_in, t.mean_out, t.var_out, t.f, t.f_k, t.f_xhat, t.f_k_xhat};
  }
};

// As core/cpu/layer_backward.cpp has it.
struct GradSolve {
  double unit, eps, n, share;  // 1 / levels; 1 / n
  Divider channels;            // of a set of contexts
  ChannelVector weight_in, weight_out;
  const int32_t* tables;
  float* grad_affine;  // four rows, this far apart:
  int64_t pitch;

  __device__ const CodeTable& table_of(uint32_t c) const {
    return *reinterpret_cast<const CodeTable*>(tables + int64_t{c} * kCodeTableWords);
  }
  __device__ GradWeights weights(uint32_t c) const {
    const uint32_t channel = channels.remainder(c);
    return {weight_in.at(channel, 1.0), weight_out.at(channel, 1.0)};
  }
  __device__ GradMap operator()(uint32_t c, const GradSums& sums, bool keep) const {
    return (*this)(c, weights(c), sums, keep);
  }
  __device__ GradMap operator()(uint32_t c, const GradWeights& weight, const GradSums& sums,
                                bool keep) const {
    return (*this)(c, weight, sums, CodeMeans::of(table_of(c)), keep);
  }
  __device__ GradMap operator()(uint32_t c, const GradWeights& weight, const GradSums& sums,
                                const CodeMeans& t, bool keep) const {
    const double inv1 = rsqrt(t.var_in + eps), inv2 = rsqrt(t.var_out + eps);
    const double slope = inv2 * unit, level0 = -t.mean_out * inv2;  // yhat = k * slope + level0
    const double f_yhat = slope * t.f_k + level0 * t.f;
    const double f_yhat_xhat = slope * t.f_k_xhat + level0 * t.f_xhat;
    const double outer = weight.out * inv2;
    const double dy = sums.dy * share;
    const double dy_yhat = slope * (sums.dy_k * share) + level0 * dy;
    const double dz = outer * (sums.f_dy * share - dy * t.f - dy_yhat * f_yhat);
    const double dz_xhat = outer * (sums.f_dy_xhat * share - dy * t.f_xhat - dy_yhat * f_yhat_xhat);
    if (keep) {
      grad_affine[c] = static_cast<float>(n * dz_xhat);
      grad_affine[pitch + c] = static_cast<float>(n * dz);
      grad_affine[2 * pitch + c] = static_cast<float>(n * dy_yhat);
      grad_affine[3 * pitch + c] = static_cast<float>(n * dy);
    }
    const double inner = weight.in * inv1, both = inner * outer;
    return {static_cast<float>(both), static_cast<float>(-both * slope * dy_yhat),
            static_cast<float>(-both * (dy + level0 * dy_yhat)),
            static_cast<float>(-inner * dz_xhat),
            static_cast<float>(QACT_MUTANT("cuda_grad_x_mean_dz") ? 0 : -inner * dz)};
  }
};

template <class T>
struct GradCall {
  const T* dy;
  T* dx;
  const uint8_t* code;
  Layout dy_layout, dx_layout, code_layout;
  GradSolve solve;
};

// What one pass over the tensor reads.
template <class T, int kSize>
struct Gradient {
  Pack<T, kSize> dy;
  Pack<uint8_t, kSize> code;
};

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

// visit(dy, code, image, place) for a block's packs of one channel.
template <int kSize, class T, class Visit>
__device__ inline void for_each_gradient(const GradCall<T>& call, const Extent& extent,
                                         uint32_t channel, const Visit& visit) {
  for_each_pack<kSize>(extent, blockIdx.x, [&](uint32_t image, uint32_t place, uint32_t index) {
    const auto dy = load<kSize>(call.dy + row_offset(call.dy_layout, channel, image, place));
    const auto code = load<kSize>(call.code + static_cast<int64_t>(channel) * extent.n + index);
    visit(dy, code, image, place);
  });
}

// Copies of a table side by side, so that few lanes of a warp meet in a bank.
inline constexpr int kRowCopies = 4;

template <class T, int kSize>
__global__ void __launch_bounds__(kGradThreads)
    sum_rows(GradCall<T> call, Extent extent, GradSums* parts) {
  __shared__ SumRow rows[kCodes * kRowCopies];
  __shared__ Room<GradSums, kGradThreads / kWarp> shared_room;
  let_next_start();
  const uint32_t channel = blockIdx.y;
  const CodeTable& table = call.solve.table_of(channel);
  for (int i = threadIdx.x; i < kCodes * kRowCopies; i += kGradThreads) {
    rows[i] = SumRow(table, i / kRowCopies);
  }
  __syncthreads();
  const SumRow* own = rows + threadIdx.x % kRowCopies;
  ThreadSums sums;
  for_each_gradient<kSize>(
      call, extent, channel,
      [&](const Pack<T, kSize>& dy, const Pack<uint8_t, kSize>& code, uint32_t, uint32_t) {
#pragma unroll
        for (int i = 0; i < kSize; ++i) sums.add(to_float(dy.v[i]), own[code.v[i] * kRowCopies]);
      });
  const GradSums all = merge_columns<1>(GradSums::from(sums.sum), shared_room.array());
  if (threadIdx.x == 0) parts[channel * extent.parts + blockIdx.x] = all;
}

template <class T, int kSize>
__global__ void __launch_bounds__(kGradThreads)
    apply_rows(GradCall<T> call, Extent extent, const GradSums* parts) {
  __shared__ GradRow rows[kCodes];
  __shared__ Room<GradMap> shared_room;
  GradMap& shared = shared_room.value();
  const uint32_t channel = blockIdx.y;
  wait_for_previous();
  if (threadIdx.x < kWarp) {
    const GradSums sums =
        merge_sums(parts + static_cast<int64_t>(channel) * extent.parts, extent.parts);
    if (threadIdx.x == 0) shared = call.solve(channel, sums, blockIdx.x == 0);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCodes; i += kGradThreads) {
    rows[i] = shared.row(call.solve.table_of(channel), i);
  }
  __syncthreads();
  for_each_gradient<kSize>(call, extent, channel,
                           [&](const Pack<T, kSize>& dy, const Pack<uint8_t, kSize>& code,
                               uint32_t image, uint32_t place) {
                             Pack<T, kSize> dx;
#pragma unroll
                             for (int i = 0; i < kSize; ++i) {
                               dx.v[i] = from_float<T>(rows[code.v[i]](to_float(dy.v[i])));
                             }
                             *reinterpret_cast<Pack<T, kSize>*>(
                                 call.dx + row_offset(call.dx_layout, channel, image, place)) = dx;
                           });
}

}  // namespace qact::core::cuda
