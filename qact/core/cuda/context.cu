// Contexts on CUDA: built from tensors, blended, converted into quantiles; and the running
// statistics and context of a layer.
#include <cmath>

#include "qact/core/context_rows.h"
#include "qact/core/cuda/context_ties.cuh"
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/passes.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kTieBlock = 1024;
constexpr int kRows = 32;  // threads of a block with a channel each

__device__ inline float scaled(float x, float scale, float shift) {
  return __fadd_rn(__fmul_rn(x, scale), shift);
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    build(Values<T> all, ChannelVector scale, ChannelVector shift, unsigned long long* contexts) {
  __shared__ uint32_t count[kContextBins];
  const uint32_t channel = blockIdx.y;
  const Values<T> x = all.of(channel);
  const float a = static_cast<float>(scale.at(channel, 1.0));
  const float b = static_cast<float>(shift.at(channel, 0.0));
  count[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < x.n; i += gridDim.x * kBlock) {
    const float z = scaled(x[i], a, b);
    if (!isnan(z)) atomicAdd(&count[context_bin(z)], 1u);
  }
  __syncthreads();
  if (count[threadIdx.x] > 0) {
    atomicAdd(&contexts[channel * kContextBins + threadIdx.x],
              static_cast<unsigned long long>(count[threadIdx.x]) * kContextUnit);
  }
}

template <class T>
struct ScaledKeys {
  Values<T> x;
  float scale, shift;
  uint32_t n;

  __device__ uint32_t operator[](uint32_t i) const {
    return context_key(scaled(x[i], scale, shift));
  }
};

// A block has one channel, whose values are counted by their own bins.
template <class T>
__global__ void __launch_bounds__(kTieBlock)
    build_ties(Values<T> all, ChannelVector scale, ChannelVector shift, int64_t* contexts) {
  static_assert(kTieBlock >= kContextBins);
  __shared__ Room<RefineSpace<Short>> room;
  const uint32_t channel = blockIdx.x;
  const Values<T> x = all.of(channel);
  const ScaledKeys<T> keys{x, static_cast<float>(scale.at(channel, 1.0)),
                           static_cast<float>(shift.at(channel, 0.0)), x.n};
  int64_t* own = contexts + int64_t{channel} * kContextBins + threadIdx.x;
  const bool inside = threadIdx.x < kContextBins;
  const uint32_t count = inside ? static_cast<uint32_t>(*own / kContextUnit) : 0;
  const int64_t moved = move_ties(keys, count, room.value());
  if (inside) *own = moved * kContextUnit;
}

__global__ void blend(const int64_t* a, int64_t a_units, const int64_t* b, int64_t b_units,
                      int64_t* blended, int64_t channels) {
  const int64_t c = blockIdx.x * kRows + threadIdx.x;
  if (c >= channels) return;
  blend_contexts(a + c * kContextBins, a_units, b + c * kContextBins, b_units,
                 blended + c * kContextBins);
}

__global__ void row_quantiles(const int64_t* contexts, int64_t channels, Quantile quantile,
                              double* quantiles) {
  const int64_t c = blockIdx.x * kRows + threadIdx.x;
  if (c >= channels) return;
  context_row_quantiles(contexts + c * kContextBins, quantile, quantiles + c * quantile.levels);
}

// One warp a channel. The cumulative counts of either context are scaled and rounded, as
// add_scaled_context does it.
__global__ void track(LayerTrack call, double unbiased, int64_t running_units,
                      int64_t batch_units) {
  constexpr int kEach = kContextBins / kWarp;
  const int64_t c = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (c >= call.channels) return;
  if (c == 0 && lane == 0) ++*call.batches;
  if (lane == 0) {
    const LayerStats& s = reinterpret_cast<const LayerStats*>(call.stats)[c];
    const auto move = [&](const RunningVector& vector, double value) {
      float* running = static_cast<float*>(vector.data);
      running[c] += static_cast<float>(call.momentum) * (static_cast<float>(value) - running[c]);
    };
    move(call.mean_in, s.mean_in);
    move(call.var_in, s.var_in * (QACT_MUTANT("cuda_running_var_unbiased") ? 1 : unbiased));
    move(call.mean_out, s.mean_out);
    move(call.var_out, s.var_out * unbiased);
  }
  int64_t* running = call.context + c * kContextBins;
  const int64_t* rows[2] = {running, call.batch + c * kContextBins};
  int64_t units[2] = {running_units, batch_units}, own[2], counts[2][kEach], before[2];
  for (int r = 0; r < 2; ++r) {
    int64_t sum = 0;
    for (int i = 0; i < kEach; ++i) sum += counts[r][i] = rows[r][lane * kEach + i];
    int64_t inclusive = sum;
    for (int step = 1; step < kWarp; step *= 2) {
      const int64_t other = __shfl_up_sync(0xffffffffu, inclusive, step);
      if (lane >= step) inclusive += other;
    }
    own[r] = __shfl_sync(0xffffffffu, inclusive, kWarp - 1);
    before[r] = inclusive - sum;
  }
  if (own[0] == 0) units[1] += units[0], units[0] = 0;
  if (own[1] == 0) units[0] += units[1], units[1] = 0;
  int64_t out[kEach] = {};
  for (int r = 0; r < 2; ++r) {
    if (own[r] == 0 || units[r] == 0) continue;
    const ScaledTotal scaled(own[r], units[r]);
    int64_t seen = before[r], written = scaled(seen);
    for (int i = 0; i < kEach; ++i) {
      seen += counts[r][i];
      const int64_t upto = scaled(seen);
      out[i] += upto - written;
      written = upto;
    }
  }
  for (int i = 0; i < kEach; ++i) running[lane * kEach + i] = out[i];
}

dim3 row_grid(int64_t channels) {
  return dim3(static_cast<unsigned>((channels + kRows - 1) / kRows));
}

int64_t to_units(double values) { return std::llround(values * kContextUnit); }

}  // namespace

void context_build(const ContextBuild& call, const Stream& stream) {
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  check(cudaMemsetAsync(call.context, 0, sizeof(int64_t) * kContextBins * call.shape.channels,
                        handle),
        "context_build");
  const int64_t blocks = std::min<int64_t>((call.shape.context_size() + 4095) / 4096, 256);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(call.shape.channels));
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    launch("context_build", build<T>, grid, kBlock, 0, handle, values_of<T>(call.shape, call.x),
           call.scale, call.shift, reinterpret_cast<unsigned long long*>(call.context));
    launch("context_build", build_ties<T>, dim3(static_cast<unsigned>(call.shape.channels)),
           kTieBlock, 0, handle, values_of<T>(call.shape, call.x), call.scale, call.shift,
           call.context);
  });
}

void context_blend(const ContextBlend& call, const Stream& stream) {
  launch("context_blend", blend, row_grid(call.channels), kRows, 0,
         static_cast<cudaStream_t>(stream.handle), call.a, to_units(call.a_values), call.b,
         to_units(call.b_values), call.blended, call.channels);
}

void context_quantiles(const int64_t* contexts, int64_t channels, const Quantile& quantile,
                       double* quantiles, const Stream& stream) {
  launch("context_quantiles", row_quantiles, row_grid(channels), kRows, 0,
         static_cast<cudaStream_t>(stream.handle), contexts, channels, quantile, quantiles);
}

void layer_track(const LayerTrack& call, const Stream& stream) {
  constexpr int kWarps = 4;
  launch("layer_track", track, dim3(static_cast<unsigned>((call.channels + kWarps - 1) / kWarps)),
         kWarps * kWarp, 0, static_cast<cudaStream_t>(stream.handle), call, call.n / (call.n - 1),
         to_units((1 - call.momentum) * call.values), to_units(call.momentum * call.values));
}

}  // namespace qact::core::cuda
