// Values from outside a context, on CUDA: levels by search among its quantiles.
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/passes.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr const char* kWhat = "quantile_apply";
constexpr int kBlock = 256;

// The number of quantiles <= z.
__device__ int search(const double* q, int levels, float z) {
  return first_where(0, levels - QACT_MUTANT("cuda_apply_last_quantile"),
                     [&](int j) { return !(static_cast<float>(q[j]) <= z); });
}

// The level as a fraction between its two quantiles; see core/cpu/apply.cpp.
__device__ double unquantised(float z, int level, const double* q, int levels) {
  double share;
  if (level == 0) {
    share = 1 / (1 + (static_cast<float>(q[0]) - static_cast<double>(z)));
  } else if (level == levels) {
    const double past = static_cast<double>(z) - static_cast<float>(q[levels - 1]);
    share = isinf(past) ? 1 : past / (1 + past);
  } else {
    const double low = static_cast<float>(q[level - 1]), high = static_cast<float>(q[level]);
    share = (z - low) / (high - low);
  }
  return (level + share) / (levels + 1);
}

struct Vectors {
  ChannelVector scale, shift, out_scale, out_shift;

  __device__ float z(float x, uint32_t c) const {
    return __fadd_rn(__fmul_rn(x, static_cast<float>(scale.at(c, 1.0))),
                     static_cast<float>(shift.at(c, 0.0)));
  }
};

template <class T>
__global__ void apply(Values<T> all, Results<T> y, Vectors vectors, const double* quantiles,
                      int levels, bool quantised) {
  const uint32_t channel = blockIdx.y;
  const Values<T> x = all.of(channel);
  const double* q = quantiles + static_cast<int64_t>(channel) * levels;
  const double scale = vectors.out_scale.at(channel, 1.0);
  const double shift = vectors.out_shift.at(channel, 0.0);
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < x.n; i += gridDim.x * kBlock) {
    const float z = vectors.z(x[i], channel);
    const int level = search(q, levels, z);
    const double u =
        quantised ? static_cast<double>(level) / levels : unquantised(z, level, q, levels);
    y.at(channel, i) = from_float<T>(isnan(z) ? z : static_cast<float>(u * scale + shift));
  }
}

// f of each level: the quantiles as points of weight 1 / levels, at the level's middle.
__global__ void level_density(const double* quantiles, int levels, double bandwidth,
                              double* density) {
  const double* q = quantiles + static_cast<int64_t>(blockIdx.x) * levels;
  double* out = density + static_cast<int64_t>(blockIdx.x) * (levels + 1);
  for (int k = threadIdx.x; k <= levels; k += kBlock) {
    const double at = 0.5 * (q[max(k - 1, 0)] + q[min(k, levels - 1)]);
    double sum = 0;
    for (int j = 0; j < levels; ++j) {
      const double u = (at - q[j]) / bandwidth;
      sum += exp(-0.5 * u * u);
    }
    out[k] = sum * 0.3989422804014327 / bandwidth / levels;
  }
}

struct AffineSums {
  double sum[4] = {0, 0, 0, 0};

  __device__ static AffineSums merge(const AffineSums& a, const AffineSums& b) {
    AffineSums out;
    for (int i = 0; i < 4; ++i) out.sum[i] = a.sum[i] + b.sum[i];
    return out;
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    apply_backward(Values<T> all_dy, Values<T> all_x, Results<T> dx, Vectors vectors,
                   const double* quantiles, const double* density, int levels, float* grad_affine) {
  __shared__ Room<AffineSums, kBlock / kWarp> room;
  const uint32_t channel = blockIdx.x;
  const Values<T> dy = all_dy.of(channel), x = all_x.of(channel);
  const double* q = quantiles + static_cast<int64_t>(channel) * levels;
  const double* f = density + static_cast<int64_t>(channel) * (levels + 1);
  const double scale = vectors.scale.at(channel, 1.0);
  const double out_scale = vectors.out_scale.at(channel, 1.0);
  AffineSums sums;
  for (uint32_t i = threadIdx.x; i < x.n; i += kBlock) {
    const float in = x[i], grad = dy[i], z = vectors.z(in, channel);
    const int level = search(q, levels, z);
    const double at = isfinite(z) ? f[level] : 0.0 * z;
    const double dz = isinf(z) ? 0.0 : grad * out_scale * at;
    dx.at(channel, i) = from_float<T>(static_cast<float>(dz * scale));
    sums.sum[0] += isinf(z) ? 0.0 : dz * in;
    sums.sum[1] += dz;
    sums.sum[2] += static_cast<double>(grad) * level / levels;
    sums.sum[3] += grad;
  }
  sums = merge_columns<1>(sums, room.array());
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      grad_affine[i * gridDim.x + channel] = static_cast<float>(sums.sum[i]);
    }
  }
}

}  // namespace

void quantile_apply(const QuantileApply& call, const Stream& stream) {
  const Vectors vectors{call.scale, call.shift, call.out_scale, call.out_shift};
  const int64_t blocks = std::min<int64_t>((call.shape.context_size() + kBlock - 1) / kBlock, 1024);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(call.shape.channels));
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    launch(kWhat, apply<T>, grid, kBlock, 0, static_cast<cudaStream_t>(stream.handle),
           values_of<T>(call.shape, call.x), results_of<T>(call.shape, call.y), vectors,
           call.quantiles, call.levels, call.quantised);
  });
}

size_t quantile_apply_backward_scratch(const QuantileApplyBackward& call) {
  return sizeof(double) * call.shape.channels * (call.levels + 1);
}

void quantile_apply_backward(const QuantileApplyBackward& call, float* grad_affine,
                             const Stream& stream) {
  const Vectors vectors{call.scale, call.shift, call.out_scale, {}};
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  const dim3 grid(static_cast<unsigned>(call.shape.channels));
  double* density = static_cast<double*>(stream.scratch);
  launch(kWhat, level_density, grid, kBlock, 0, handle, call.quantiles, call.levels, call.bandwidth,
         density);
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    launch(kWhat, apply_backward<T>, grid, kBlock, 0, handle, values_of<T>(call.shape, call.grad_y),
           values_of<T>(call.shape, call.x), results_of<T>(call.shape, call.grad_x), vectors,
           call.quantiles, density, call.levels, grad_affine);
  });
}

}  // namespace qact::core::cuda
