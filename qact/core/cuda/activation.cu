// The plain operator: the passes of the fused layer without its norms.
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/passes.cuh"
#include "qact/core/cuda/small_launch.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr const char* kWhat = "quantile_activation";

// A thread's channel and values, neighbours in memory side by side in a warp.
struct Walk {
  bool columns;
  uint32_t n, channels;

  dim3 grid() const {
    constexpr uint32_t kMostBlocks = 4096;
    if (columns) return dim3((channels + 31) / 32, std::min((n + 7) / 8, kMostBlocks));
    return dim3(std::min((n + 255) / 256, kMostBlocks), channels);
  }
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    const uint32_t channel = columns ? blockIdx.x * 32 + threadIdx.x % 32 : blockIdx.y;
    const uint32_t first =
        columns ? blockIdx.y * 8 + threadIdx.x / 32 : blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t step = columns ? gridDim.y * 8 : gridDim.x * blockDim.x;
    if (channel >= channels) return;
    for (uint32_t i = first; i < n; i += step) visit(channel, i);
  }
};

template <class T>
__global__ void __launch_bounds__(256)
    write_plain(Values<T> x, Results<T> y, Results<T> density, Walk walk, const PassMap* maps,
                const int32_t* nodes, const LayerStats* stats, int levels) {
  walk.for_each([&](uint32_t channel, uint32_t i) {
    const float v = x.of(channel)[i];
    const PassMap& map = maps[channel];
    const int k = isnan(v) ? 0 : find_code(v, map, map.code, map.threshold, levels).level;
    y.at(channel, i) =
        from_float<T>(isnan(v) ? v : __fdiv_rn(static_cast<float>(k), static_cast<float>(levels)));
    if (!density.data) return;
    const DensityAt at(stats[channel]);
    float f = 0;
    if (isnan(v)) {
      f = v;
    } else if (!isinf(v)) {
      f = at(v - at.centre, nodes + static_cast<int64_t>(channel) * kMostNodes) *
          static_cast<float>(QACT_MUTANT("cuda_plain_unit") ? 1 : stats[channel].density_unit);
    }
    density.at(channel, i) = from_float<T>(f);
  });
}

size_t tables(const ActivationForward& call) {
  return static_cast<size_t>(call.shape.channels) *
         (sizeof(LayerStats) + (call.density ? sizeof(int32_t) * kMostNodes : 0));
}

}  // namespace

size_t activation_forward_scratch(const ActivationForward& call) {
  if (is_short(call.shape, call.quantile)) return 0;
  return tables(call) + Passes(call.shape, call.x, call.quantile).scratch();
}

void activation_forward(const ActivationForward& call, const Stream& stream) {
  SolveCall solve(call.quantile, call.shape.context_size());
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    const Results<T> y = results_of<T>(call.shape, call.y);
    const Results<T> density = results_of<T>(call.shape, call.density);
    if (is_short(call.shape, call.quantile)) {
      const SmallCall<T> small{values_of<T>(call.shape, call.x), y, {}, density, /*plain=*/true};
      return run_short(kWhat, call.shape, small, solve, stream);
    }
    char* scratch = static_cast<char*>(stream.scratch);
    solve.stats = reinterpret_cast<double*>(scratch);
    int32_t* nodes = reinterpret_cast<int32_t*>(scratch + sizeof(LayerStats) * call.shape.channels);
    if (call.density) solve.density = nodes;
    const Passes passes(call.shape, call.x, call.quantile);
    const PassMap* maps =
        passes.solve<T>(kWhat, call.x, solve, {stream.handle, scratch + tables(call)});
    const Walk walk{order_of(call.shape, call.x) == Order::columns,
                    static_cast<uint32_t>(call.shape.context_size()),
                    static_cast<uint32_t>(call.shape.channels)};
    launch(kWhat, write_plain<T>, walk.grid(), 256, 0, static_cast<cudaStream_t>(stream.handle),
           values_of<T>(call.shape, call.x), y, density, walk, maps, nodes,
           reinterpret_cast<const LayerStats*>(solve.stats), call.quantile.levels);
  });
}

}  // namespace qact::core::cuda
