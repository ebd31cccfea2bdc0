// The backward pass over several ranks, from codes and their tables, as
// core/cpu/layer_backward.cpp has it. Sums are in double, in an order that the shape decides.
#include <cmath>

#include "qact/core/codes.h"
#include "qact/core/cuda/world.cuh"
#include "qact/core/cuda/world.h"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr const char* kWhat = "quantile_layer_world_backward";

__device__ inline const CodeTable& table_of(const int32_t* table, uint32_t channel) {
  return *reinterpret_cast<const CodeTable*>(table +
                                             static_cast<int64_t>(channel) * kCodeTableWords);
}

// Over values: of dy, k dy, f dy and f xhat dy, xhat in units of the table.
struct Sums {
  double of[kWorldSums];
};
static_assert(kWorldSums == 4);

// What a warp adds up is a partial sum of its channel, [channels][parts * kWorldWarps].
template <class T, bool kColumns>
__global__ void world_grad_sums(WorldTensor<const T> grad_y, WorldExtent extent,
                                const uint8_t* codes, const int32_t* tables, Sums* partial) {
  const uint32_t channel = world_channel<kColumns>();
  Sums sums = {};
  if (channel < extent.channels) {
    const uint8_t* code = codes + static_cast<int64_t>(channel) * extent.n;
    const CodeTable& table = table_of(tables, channel);
    for_each_own<kColumns>(extent, [&](uint32_t i, uint32_t image, uint32_t place) {
      const double dy = to_float(world_at(grad_y, channel, image, place));
      const int c = code[i];
      const double f_dy = table.density[c] * dy;
      sums.of[0] += dy;
      sums.of[1] += table.level[c] * dy;
      sums.of[2] += f_dy;
      sums.of[3] += table.input[c] * f_dy;
    });
  }
  for (double& v : sums.of) {
    for (int mask = kWarp / 2; mask > 0 && !kColumns; mask /= 2) {
      v += __shfl_xor_sync(0xffffffffu, v, mask);
    }
  }
  if (channel >= extent.channels || (!kColumns && threadIdx.x % kWarp != 0)) return;
  const uint32_t part = blockIdx.x * kWorldWarps + threadIdx.x / kWarp;
  partial[static_cast<int64_t>(channel) * extent.parts * kWorldWarps + part] = sums;
}

__global__ void world_merge_sums(const Sums* partial, uint32_t channels, uint32_t parts,
                                 double* sums) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= channels * kWorldSums) return;
  const Sums* own = partial + static_cast<int64_t>(i / kWorldSums) * parts;
  double sum = 0;
  for (uint32_t p = QACT_MUTANT("cuda_world_first_part"); p < parts; ++p) {
    sum += own[p].of[i % kWorldSums];
  }
  sums[i] = sum;
}

// dx = dy * scale + shift, with scale = f * by_f and
// shift = f * (plain + k * by_k) + input * by_input + rest.
struct GradLine {
  float by_f, plain, by_k, by_input, rest;
};

struct LineCall {
  int levels;
  double eps;
  uint32_t channels;
  ChannelVector weight_in, weight_out;
  const int32_t* tables;
  const int64_t* values;
  const double *own, *all;
  float* grad_affine;  // [4][channels]
  GradLine* lines;
};

__global__ void world_grad_lines(LineCall call) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= call.channels) return;
  const CodeTable& table = table_of(call.tables, c);
  const double n = static_cast<double>(*call.values);
  const double inv1 = 1 / sqrt(table.var_in + call.eps), inv2 = 1 / sqrt(table.var_out + call.eps);
  // yhat = k * slope + level0.
  const double slope = inv2 / call.levels, level0 = -table.mean_out * inv2;
  const double f_yhat = slope * table.f_k + level0 * table.f;
  const double f_yhat_xhat = slope * table.f_k_xhat + level0 * table.f_xhat;
  const double outer = call.weight_out.at(c, 1.0) * inv2;
  struct Means {
    double dy, dy_yhat, dz, dz_xhat;
  };
  const auto means_of = [&](const double* sums) {
    Means out;
    out.dy = sums[0] / n;
    out.dy_yhat = slope * sums[1] / n + level0 * out.dy;
    out.dz = outer * (sums[2] / n - out.dy * table.f - out.dy_yhat * f_yhat);
    out.dz_xhat = outer * (table.input_unit * sums[3] / n - out.dy * table.f_xhat -
                           out.dy_yhat * f_yhat_xhat);
    return out;
  };
  const Means own = means_of(call.own + kWorldSums * c);
  const double gradients[] = {n * own.dz_xhat, n * own.dz, n * own.dy_yhat, n * own.dy};
  for (int i = 0; i < 4; ++i) {
    call.grad_affine[i * call.channels + c] = static_cast<float>(gradients[i]);
  }
  const Means all = means_of(call.all + kWorldSums * c);
  const double inner = call.weight_in.at(c, 1.0) * inv1, both = inner * outer;
  const double xhat = QACT_MUTANT("cuda_world_grad_xhat") ? 0 : all.dz_xhat;
  call.lines[c] = {
      static_cast<float>(both), static_cast<float>(-both * (all.dy + level0 * all.dy_yhat)),
      static_cast<float>(-both * slope * all.dy_yhat),
      static_cast<float>(-inner * xhat * table.input_unit), static_cast<float>(-inner * all.dz)};
}

template <class T, bool kColumns>
__global__ void world_grad_write(WorldTensor<const T> grad_y, WorldTensor<T> grad_x,
                                 WorldExtent extent, const uint8_t* codes, const int32_t* tables,
                                 const GradLine* lines) {
  const uint32_t channel = world_channel<kColumns>();
  if (channel >= extent.channels) return;
  const uint8_t* code = codes + static_cast<int64_t>(channel) * extent.n;
  const CodeTable& table = table_of(tables, channel);
  const GradLine line = lines[channel];
  for_each_own<kColumns>(extent, [&](uint32_t i, uint32_t image, uint32_t place) {
    const int c = code[i];
    const float f = table.density[c], k = table.level[c], input = table.input[c];
    const float dy = to_float(world_at(grad_y, channel, image, place));
    const float dx = dy * (f * line.by_f) +
                     (f * (k * line.by_k + line.plain) + (input * line.by_input + line.rest));
    world_at(grad_x, channel, image, place) = from_float<T>(dx);
  });
}

// Of the whole call; the gradients may lie in different orders.
WorldExtent extent_of_call(const LayerBackward& call) {
  return WorldExtent(call.shape, call.shape.channels, world_columns(call.grad_y));
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kWorldThreads - 1) / kWorldThreads);
}

size_t lines_bytes(const LayerBackward& call) {
  return (call.shape.channels * sizeof(GradLine) + 15) / 16 * 16;
}

}  // namespace

size_t world_backward_scratch(const LayerBackward& call) {
  if (call.shape.batch == 0) return 0;
  return lines_bytes(call) +
         call.shape.channels * extent_of_call(call).parts * kWorldWarps * sizeof(Sums);
}

void world_backward_sums(const LayerBackward& call, double* sums, const Stream& stream) {
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  const int64_t channels = call.shape.channels;
  if (call.shape.batch == 0) {
    return check(cudaMemsetAsync(sums, 0, channels * kWorldSums * sizeof(double), handle), kWhat);
  }
  auto* partial = reinterpret_cast<Sums*>(static_cast<char*>(stream.scratch) + lines_bytes(call));
  const WorldExtent extent = extent_of_call(call);
  with_type(call.grad_y.dtype, [&]<class T>(Type<T>) {
    with_columns(world_columns(call.grad_y), [&]<bool kColumns>() {
      launch(kWhat, world_grad_sums<T, kColumns>, extent.grid(kColumns), kWorldThreads, 0, handle,
             WorldTensor<const T>(call.grad_y), extent, call.code, call.table, partial);
    });
  });
  launch(kWhat, world_merge_sums, dim3(blocks_for(channels * kWorldSums)), kWorldThreads, 0, handle,
         partial, extent.channels, extent.parts * kWorldWarps, sums);
}

void world_backward_write(const LayerBackward& call, const int64_t* values, const double* own,
                          const double* all, float* grad_affine, const Stream& stream) {
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  const int64_t channels = call.shape.channels;
  if (call.shape.batch == 0) {
    return check(cudaMemsetAsync(grad_affine, 0, 4 * channels * sizeof(float), handle), kWhat);
  }
  auto* lines = static_cast<GradLine*>(stream.scratch);
  const WorldExtent extent = extent_of_call(call);
  const LineCall of{call.quantile.levels,
                    call.eps,
                    extent.channels,
                    call.weight_in,
                    call.weight_out,
                    call.table,
                    values,
                    own,
                    all,
                    grad_affine,
                    lines};
  launch(kWhat, world_grad_lines, dim3(blocks_for(channels)), kWorldThreads, 0, handle, of);
  with_type(call.grad_y.dtype, [&]<class T>(Type<T>) {
    with_columns(world_columns(call.grad_y), [&]<bool kColumns>() {
      launch(kWhat, world_grad_write<T, kColumns>, extent.grid(kColumns), kWorldThreads, 0, handle,
             WorldTensor<const T>(call.grad_y), WorldTensor<T>(call.grad_x), extent, call.code,
             call.table, lines);
    });
  });
}

}  // namespace qact::core::cuda
