// How blocks walk over a tensor. In rows, a channel's values of one image lie side by side
// (NCHW); in columns, the channels of one place do (channels_last, or a matrix).
#pragma once

#include <cstdint>

#include "qact/core/cuda/numbers.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Where contexts begin. The batch has one of each channel. Where each is of some images alone, they
// come in sets: context k is of channel k % channels, in the k / channels-th set of images.
struct Starts {
  int64_t channel_stride = 1, set_stride = 0;
  Divider channels;

  __device__ int64_t operator()(uint32_t context) const {
    const uint32_t set = channels.quotient(context) - QACT_MUTANT("cuda_starts_set");
    return set * set_stride + channels.remainder(context) * channel_stride;
  }
};

struct Layout {
  int64_t batch_stride = 0;  // rows: from image to image; columns: unused
  int64_t row_stride = 0;    // columns: from place to place
  Starts start;              // in columns, those of a set lie side by side
};

// What all tensors of one call share.
struct Extent {
  uint32_t n = 0;  // values of a channel
  uint32_t channels = 0;
  uint32_t spatial = 1;   // rows: values of a run
  uint32_t parts = 1;     // blocks of a channel
  uint32_t per_part = 0;  // packs (rows) or places (columns) of a part
  Divider run;            // rows: packs of a run
};

// A block's packs of one channel: visit(image, place, index of the first value).
template <int kSize, class Visit>
__device__ inline void for_each_pack(const Extent& extent, uint32_t part, const Visit& visit) {
  const uint32_t packs = extent.n / kSize - QACT_MUTANT("cuda_row_tail");
  const uint32_t begin = part * extent.per_part;
  const uint32_t end = min(packs, begin + extent.per_part);
#pragma unroll 4
  for (uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const uint32_t image = extent.run.quotient(i);
    visit(image, (i - image * extent.run.divisor) * kSize, i * kSize);
  }
}

__device__ inline int64_t row_offset(const Layout& layout, uint32_t channel, uint32_t image,
                                     uint32_t place) {
  return static_cast<int64_t>(image) * layout.batch_stride + layout.start(channel) + place;
}

// Values of a pack in columns: few, since each has a map or sums of its own.
inline constexpr int kColumnPack = 2;

// A thread's places in columns: every thread keeps its kSize channels.
template <int kGroup, int kSize>
struct Column {
  static constexpr int kLanes = kGroup / kSize;  // threads of one place
  uint32_t channel, first;

  __device__ explicit Column(uint32_t group)
      : channel(group * kGroup + threadIdx.x % kLanes * kSize), first(threadIdx.x / kLanes) {}

  // visit(what load gave for some places, the first of them), so that a thread waits for
  // kAhead loads at once.
  template <int kAhead, class Load, class Visit>
  __device__ void for_each_batch(const Extent& extent, uint32_t part, const Load& load,
                                 const Visit& visit) const {
    if (channel >= extent.channels) return;
    using Loaded = decltype(load(0u));
    const uint32_t begin = part * extent.per_part, end = min(extent.n, begin + extent.per_part);
    uint32_t i = begin + first;
    for (; i + (kAhead - 1) * step() < end; i += kAhead * step()) {
      Loaded loaded[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) loaded[a] = load(i + a * step());
      visit(loaded, i);
    }
    for (; i < end - QACT_MUTANT("cuda_column_tail"); i += step()) {
      const Loaded loaded[1] = {load(i)};
      visit(loaded, i);
    }
  }

  __device__ static uint32_t step() { return blockDim.x / kLanes; }  // between a thread's places
};

// visit(load(i)) for all i in [0, n), by a block: a thread waits for kAhead loads at once.
template <int kAhead, class Load, class Visit>
__device__ inline void for_each_ahead(uint32_t n, const Load& load, const Visit& visit) {
  uint32_t i = threadIdx.x;
  if constexpr (kAhead > 1) {
    for (; i + (kAhead - 1) * blockDim.x < n; i += kAhead * blockDim.x) {
      decltype(load(0u)) loaded[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) loaded[a] = load(i + a * blockDim.x);
#pragma unroll
      for (int a = 0; a < kAhead; ++a) visit(loaded[a]);
    }
  }
  for (; i < n; i += blockDim.x) visit(load(i));
}

// One channel's values in any layout, one at a time.
template <class T>
struct Values {
  const T* data;
  uint32_t n;
  int64_t image_stride, place_stride;
  Divider spatial;
  Starts start;

  // As they are given, the first one's.
  __device__ Values of(uint32_t channel) const {
    Values out = *this;
    out.data += start(channel);
    return out;
  }
  __device__ const T* at(uint32_t i) const {
    const uint32_t image = spatial.quotient(i);
    return data + image * image_stride + (i - image * spatial.divisor) * place_stride;
  }
  __device__ float operator[](uint32_t i) const { return to_float(*at(i)); }
};

// All channels' results in any layout.
template <class T>
struct Results {
  T* data;
  int64_t image_stride, place_stride;
  Divider spatial;
  Starts start;

  __device__ T& at(uint32_t channel, uint32_t i) const {
    const uint32_t image = spatial.quotient(i);
    return data[start(channel) + image * image_stride +
                (i - image * spatial.divisor) * place_stride];
  }
};

}  // namespace qact::core::cuda
