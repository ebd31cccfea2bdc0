// How blocks walk over one rank's values, in tensors of any strides: in rows, a block has a part of
// one channel; in columns, where channels lie side by side, parts of 32, one to a lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/cuda/block.cuh"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/numbers.cuh"
#include "qact/core/mutant.h"
#include "qact/core/view.h"

namespace qact::core::cuda {

inline constexpr int kWorldThreads = 256, kWorldWarps = kWorldThreads / kWarp;

template <class T>
struct WorldTensor {
  T* data;
  int64_t image_stride, channel_stride, place_stride;

  explicit WorldTensor(const View& view)
      : data(static_cast<T*>(view.data)),
        image_stride(view.batch_stride),
        channel_stride(view.channel_stride),
        place_stride(view.spatial_stride) {}
};

struct WorldExtent {
  uint32_t n, channels;
  uint32_t parts, per_part;  // values of a channel in a block
  Divider spatial;

  WorldExtent(const Shape& shape, int64_t of_channels, bool columns)
      : n(static_cast<uint32_t>(shape.context_size())),
        channels(static_cast<uint32_t>(of_channels)),
        spatial(static_cast<uint32_t>(shape.spatial)) {
    constexpr int64_t kBlocks = 2112;  // that run in all, or fewer
    const int64_t groups = columns ? (of_channels + kWarp - 1) / kWarp : of_channels;
    const int64_t least = columns ? 32 * kWorldWarps : 8 * kWorldThreads;
    const int64_t most = std::max<int64_t>(1, kBlocks / groups);
    per_part = static_cast<uint32_t>(std::max((n + most - 1) / most, least));
    parts = (n + per_part - 1) / per_part;
  }
  dim3 grid(bool columns) const {
    return dim3(parts, columns ? (channels + kWarp - 1) / kWarp : channels);
  }
};

inline bool world_columns(const View& view) { return view.channel_stride == 1; }

template <bool kColumns>
__device__ inline uint32_t world_channel() {
  return kColumns ? blockIdx.y * kWarp + threadIdx.x % kWarp : blockIdx.y;
}

// visit(i, image, place) for a thread's values, all of world_channel().
template <bool kColumns, class Visit>
__device__ inline void for_each_own(const WorldExtent& extent, const Visit& visit) {
  if (world_channel<kColumns>() >= extent.channels) return;
  const uint32_t begin = blockIdx.x * extent.per_part;
  const uint32_t end = min(extent.n, begin + extent.per_part) - QACT_MUTANT("cuda_world_tail");
  const uint32_t step = kColumns ? kWorldWarps : kWorldThreads;
  for (uint32_t i = begin + (kColumns ? threadIdx.x / kWarp : threadIdx.x); i < end; i += step) {
    const uint32_t image = extent.spatial.quotient(i);
    visit(i, image, i - image * extent.spatial.divisor);
  }
}

template <class T>
__device__ inline T& world_at(const WorldTensor<T>& tensor, uint32_t channel, uint32_t image,
                              uint32_t place) {
  return tensor.data[image * tensor.image_stride + channel * tensor.channel_stride +
                     place * tensor.place_stride];
}

// run.operator()<columns>().
template <class Run>
void with_columns(bool columns, const Run& run) {
  columns ? run.template operator()<true>() : run.template operator()<false>();
}

}  // namespace qact::core::cuda
