// The launches of the forward direction, and the scratch memory between them.
#pragma once

#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/small.cuh"

namespace qact::core::cuda {

// Channels of at most this many values, in rows, are settled by one block each.
inline constexpr int64_t kOneBlock = 8192;

inline bool counted(const Shape& shape, const Quantile& quantile) {
  return shape.context_size() <= kCounted && quantile.exact_for(shape.context_size());
}

inline bool one_block(const Shape& shape, const View& x, const Quantile& quantile) {
  return counted(shape, quantile) ||
         (shape.context_size() <= kOneBlock && order_of(shape, x) == Order::rows);
}

template <class T>
Results<T> results_of(const Shape& shape, const View& view) {
  return {static_cast<T*>(view.data), view.channel_stride, view.batch_stride, view.spatial_stride,
          Divider(static_cast<uint32_t>(shape.spatial))};
}

// The level bytes, in the order of x.
inline Results<uint8_t> level_results(const Shape& shape, const View& x, uint8_t* level) {
  if (order_of(shape, x) == Order::columns) {
    return {level, 1, shape.spatial * shape.channels, shape.channels,
            Divider(static_cast<uint32_t>(shape.spatial))};
  }
  return {level, shape.context_size(), shape.spatial, 1,
          Divider(static_cast<uint32_t>(shape.spatial))};
}

template <class T>
void run_one_block(const char* what, const Shape& shape, const View& x, SmallCall<T> call,
                   const SolveCall& solve, const Stream& stream) {
  call.x = values_of<T>(shape, x);
  call.channel_stride = x.channel_stride;
  const dim3 grid(static_cast<unsigned>(shape.channels));
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  if (counted(shape, solve.quantile)) {
    launch(what, forward_counted<T>, grid, kCounted, 0, handle, call, solve);
  } else {
    launch(what, forward_small<T>, grid, kThreads, sizeof(SmallSpace), handle, call, solve);
  }
}

class Passes {
 public:
  Passes(const Shape& shape, const View& x)
      : shape_(shape),
        order_(order_of(shape, x)),
        bytes_(x.dtype == DType::f32 ? 4 : 2),
        size_(order_ == Order::rows ? 16 / bytes_ : 4),
        packed_(packs(shape, x, size_, bytes_)) {
    const int size = packed_ ? size_ : 1;
    const bool rows = order_ == Order::rows;
    const auto groups = [&](int64_t channels) {
      return (shape.channels + channels - 1) / channels;
    };
    summary_ = extent_of(shape, order_, size, rows ? shape.channels : groups(32), rows ? 1056 : 528,
                         rows ? 4096 : 512);
    count_ = extent_of(shape, order_, size, rows ? shape.channels : groups(32 / bytes_),
                       rows ? 528 : 132, 4096);
    words_ = static_cast<uint32_t>(bins_for(shape.context_size()) + 16) / 2;
  }

  size_t scratch() const { return maps_at() + sizeof(LevelMap) * shape_.channels; }

  // Everything up to the maps from values to levels.
  template <class T>
  const LevelMap* solve(const char* what, const View& x, const SolveCall& call,
                        const Stream& stream) const {
    if (!packed_) return solve<T, 1>(what, x, call, stream);
    if constexpr (sizeof(T) == 2) {
      if (size_ == 8) return solve<T, 8>(what, x, call, stream);
    }
    return solve<T, 4>(what, x, call, stream);
  }

  template <class T>
  void write(const char* what, const LayerForward& call, const LevelMap* maps,
             const Stream& stream) const {
    if (!packed_ || !packs(shape_, call.y, size_, bytes_)) {
      return write<T, 1>(what, call, maps, stream);
    }
    if constexpr (sizeof(T) == 2) {
      if (size_ == 8) return write<T, 8>(what, call, maps, stream);
    }
    write<T, 4>(what, call, maps, stream);
  }

 private:
  int table_words() const { return static_cast<int>(words_) / 2; }  // of levels by bin
  static size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }
  size_t plans_at() const { return round_up(sizeof(Partial) * shape_.channels * summary_.parts); }
  size_t counts_at() const { return plans_at() + round_up(sizeof(ChannelPlan) * shape_.channels); }
  size_t maps_at() const {
    return counts_at() + round_up(size_t{4} * words_ * shape_.channels * count_.parts);
  }

  template <class T, int kSize>
  const LevelMap* solve(const char* what, const View& view, const SolveCall& call,
                        const Stream& stream) const {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    char* scratch = static_cast<char*>(stream.scratch);
    Partial* partial = reinterpret_cast<Partial*>(scratch);
    ChannelPlan* plans = reinterpret_cast<ChannelPlan*>(scratch + plans_at());
    const PartCounts counts{reinterpret_cast<uint32_t*>(scratch + counts_at()), words_,
                            count_.parts};
    LevelMap* maps = reinterpret_cast<LevelMap*>(scratch + maps_at());
    const T* x = static_cast<const T*>(view.data);
    const Layout layout = layout_of(shape_, view);
    const Summaries summaries{partial, summary_.parts, plans};
    const auto channels = static_cast<unsigned>(shape_.channels);
    if (order_ == Order::rows) {
      launch(what, summarise_rows<T, kSize>, dim3(summary_.parts, channels), kThreads, 0, handle, x,
             layout, summary_, partial);
      launch(what, count_rows<T, kSize>, dim3(count_.parts, channels), kThreads, size_t{4} * words_,
             handle, x, layout, count_, summaries, call.norm_in, call.quantile, counts);
    } else if constexpr (kSize <= 4) {
      constexpr int kGroup = 32 / sizeof(T), kBlock = 1024;
      launch(what, summarise_columns<T, 32, kSize>, dim3((channels + 31) / 32, summary_.parts),
             kThreads, 0, handle, x, layout, summary_, partial);
      launch(what, count_columns<T, kGroup, kSize, kBlock>,
             dim3((channels + kGroup - 1) / kGroup, count_.parts), kBlock,
             size_t{4} * words_ * kGroup, handle, x, layout, count_, summaries, call.norm_in,
             call.quantile, counts);
    }
    launch(what, cuda::solve<T>, dim3(channels), kThreads, sizeof(SolveSpace), handle,
           values_of<T>(shape_, view), view.channel_stride, plans, counts, call, maps);
    return maps;
  }

  template <class T, int kSize>
  void write(const char* what, const LayerForward& call, const LevelMap* maps,
             const Stream& stream) const {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    const T* x = static_cast<const T*>(call.x.data);
    T* y = static_cast<T*>(call.y.data);
    const Layout layout = layout_of(shape_, call.x), y_layout = layout_of(shape_, call.y);
    const auto channels = static_cast<unsigned>(shape_.channels);
    if (order_ == Order::rows) {
      const Extent extent = extent_of(shape_, order_, kSize, shape_.channels, 2112, 4096);
      launch(what, write_rows<T, kSize>, dim3(extent.parts, channels), kThreads, 0, handle, x,
             layout, y, y_layout, call.level, extent, maps, call.quantile.levels, table_words());
    } else if constexpr (kSize <= 4) {
      constexpr int kGroup = 64 / sizeof(T), kBlock = 512;
      const unsigned groups = (channels + kGroup - 1) / kGroup;
      const Extent extent = extent_of(shape_, order_, kSize, groups, 264, 512);
      launch(what, write_columns<T, kGroup, kSize, kBlock>, dim3(groups, extent.parts), kBlock,
             size_t{4} * table_words() * kGroup, handle, x, layout, y, y_layout, call.level, extent,
             maps, call.quantile.levels, table_words());
    }
  }

  Shape shape_;
  Order order_;
  int bytes_;
  int size_;  // values of a pack; fewer in columns, where each has a map of its own
  bool packed_;
  Extent summary_, count_;
  uint32_t words_;
};

}  // namespace qact::core::cuda
