// The launches of the forward direction, and the scratch memory between them.
#pragma once

#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/forward_columns.cuh"
#include "qact/core/cuda/launch.cuh"

namespace qact::core::cuda {

// Channels of a block in columns, and its threads.
inline constexpr int kSummaryGroup = 32, kCountBlock = 1024;
inline constexpr int kCountGroup = 8;
inline constexpr int kWriteGroup = 32, kWriteBlock = 1024;

class Passes {
 public:
  Passes(const Contexts& contexts, const View& x, const Quantile& quantile)
      : contexts_(contexts),
        order_(order_of(contexts, x)),
        bytes_(x.dtype == DType::f32 ? 4 : 2),
        size_(order_ == Order::rows ? 16 / bytes_ : kColumnPack),
        packed_(packs(contexts, x, size_, bytes_)),
        exact_(quantile.exact_for(contexts.size())) {
    const int size = packed_ ? size_ : 1;
    const bool rows = order_ == Order::rows;
    summary_ = extent_of(contexts, order_, size, rows ? contexts.count() : groups(kSummaryGroup),
                         rows ? 1056 : 528, rows ? 4096 : 512);
    count_ = extent_of(contexts, order_, size, rows ? contexts.count() : groups(kCountGroup),
                       rows ? 528 : 132, 4096);
    words_ = static_cast<uint32_t>(bins_for(contexts.size()) + 16) / 2;
  }

  size_t scratch() const { return keys_at() + (exact_ ? size_t{4} * contexts_.values() : 0); }

  // Everything up to the maps from values to codes.
  template <class T>
  const PassMap* solve(const char* what, const View& x, const SolveCall& call,
                       const Stream& stream) const {
    if (order_ == Order::rows) {
      packed_ ? count_rows<T, 16 / sizeof(T)>(what, x, call, stream)
              : count_rows<T, 1>(what, x, call, stream);
    } else {
      packed_ ? count_columns<T, kColumnPack>(what, x, call, stream)
              : count_columns<T, 1>(what, x, call, stream);
    }
    solve_all<T>(what, x, call, stream);
    return maps(stream);
  }

  template <class T>
  void write(const char* what, const ForwardPart& call, const Stream& stream) const {
    const bool packed = packed_ && packs(contexts_, call.y, size_, bytes_) &&
                        reinterpret_cast<uintptr_t>(call.code) % size_ == 0;
    if (order_ == Order::rows) {
      packed ? write_rows<T, 16 / sizeof(T)>(what, call, stream)
             : write_rows<T, 1>(what, call, stream);
    } else {
      packed ? write_columns<T, kColumnPack>(what, call, stream)
             : write_columns<T, 1>(what, call, stream);
    }
  }

 private:
  int table_words() const { return static_cast<int>(words_) / 2; }  // of codes by bin
  static size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }
  size_t plans_at() const { return round_up(sizeof(Partial) * contexts_.count() * summary_.parts); }
  size_t counts_at() const {
    return plans_at() + round_up(sizeof(ChannelPlan) * contexts_.count());
  }
  size_t maps_at() const {
    return counts_at() + round_up(size_t{4} * words_ * contexts_.count() * count_.parts);
  }

  size_t keys_at() const { return maps_at() + round_up(sizeof(PassMap) * contexts_.count()); }

  static char* scratch(const Stream& stream) { return static_cast<char*>(stream.scratch); }
  Summaries summaries(const Stream& stream) const {
    return {reinterpret_cast<Partial*>(scratch(stream)), summary_.parts,
            reinterpret_cast<ChannelPlan*>(scratch(stream) + plans_at())};
  }
  PartCounts counts(const Stream& stream) const {
    return {reinterpret_cast<uint32_t*>(scratch(stream) + counts_at()), words_, count_.parts};
  }
  PassMap* maps(const Stream& stream) const {
    return reinterpret_cast<PassMap*>(scratch(stream) + maps_at());
  }
  unsigned channels() const { return static_cast<unsigned>(contexts_.count()); }
  unsigned groups(unsigned of) const { return (channels() + of - 1) / of; }

  template <class T, int kSize>
  void count_rows(const char* what, const View& view, const SolveCall& call,
                  const Stream& stream) const {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    const T* x = static_cast<const T*>(view.data);
    const Layout layout = layout_of(contexts_, view);
    launch(what, summarise_rows<T, kSize>, dim3(summary_.parts, channels()), kThreads, 0, handle, x,
           layout, summary_, summaries(stream).parts);
    launch_next(what, cuda::count_rows<T, kSize>, dim3(count_.parts, channels()), kThreads,
                size_t{8} * words_, handle, x, layout, count_, summaries(stream), call.norm_in,
                call.quantile, counts(stream));
  }

  template <class T, int kSize>
  void count_columns(const char* what, const View& view, const SolveCall& call,
                     const Stream& stream) const {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    const T* x = static_cast<const T*>(view.data);
    const Layout layout = layout_of(contexts_, view);
    launch(what, summarise_columns<T, kSummaryGroup, kSize>,
           dim3(groups(kSummaryGroup), summary_.parts), kThreads, 0, handle, x, layout, summary_,
           summaries(stream).parts);
    // Not launch_next(), here and in write_columns(): large blocks that come early crowd together.
    launch(what, cuda::count_columns<T, kCountGroup, kSize, kCountBlock>,
           dim3(groups(kCountGroup), count_.parts), kCountBlock, size_t{8} * kCountGroup * words_,
           handle, x, layout, count_, summaries(stream), call.norm_in, call.quantile,
           counts(stream));
  }

  template <class T>
  void solve_all(const char* what, const View& view, SolveCall call, const Stream& stream) const {
    if (exact_) {  // takes many steps over a channel, in which more threads help
      call.keys = reinterpret_cast<uint32_t*>(scratch(stream) + keys_at());
      return solve<T, Long, 1024>(what, view, call, stream);
    }
    if (contexts_.size() < kLongChannel && call.quantile.levels <= Short::kLevels) {
      return solve<T, Short, kThreads>(what, view, call, stream);
    }
    solve<T, Long, kThreads>(what, view, call, stream);
  }
  template <class T, class Limit, int kBlock>
  void solve(const char* what, const View& view, const SolveCall& call,
             const Stream& stream) const {
    launch_next(what, cuda::solve<T, Limit, kBlock>, dim3(channels()), kBlock,
                sizeof(PassSpace<Limit, kBlock>), static_cast<cudaStream_t>(stream.handle),
                values_of<T>(contexts_, view), summaries(stream).plans, counts(stream), call,
                maps(stream));
  }

  template <class T, int kSize>
  void write_rows(const char* what, const ForwardPart& call, const Stream& stream) const {
    const Extent extent = extent_of(contexts_, order_, kSize, contexts_.count(), 2112, 4096);
    launch_next(what, cuda::write_rows<T, kSize>, dim3(extent.parts, channels()), kThreads, 0,
                static_cast<cudaStream_t>(stream.handle), static_cast<const T*>(call.x.data),
                layout_of(contexts_, call.x), static_cast<T*>(call.y.data),
                layout_of(contexts_, call.y), call.code, extent, maps(stream), call.quantile.levels,
                table_words());
  }

  template <class T, int kSize>
  void write_columns(const char* what, const ForwardPart& call, const Stream& stream) const {
    const Extent extent = extent_of(contexts_, order_, kSize, groups(kWriteGroup), 132, 512);
    launch(what, cuda::write_columns<T, kWriteGroup, kSize, kWriteBlock>,
           dim3(groups(kWriteGroup), extent.parts), kWriteBlock,
           size_t{4} * (table_words() + kCodes / 4) * kWriteGroup,
           static_cast<cudaStream_t>(stream.handle), static_cast<const T*>(call.x.data),
           layout_of(contexts_, call.x), static_cast<T*>(call.y.data), layout_of(contexts_, call.y),
           call.code, code_layout(contexts_, order_), extent, maps(stream), call.quantile.levels,
           table_words());
  }

  Contexts contexts_;
  Order order_;
  int bytes_;
  int size_;  // values of a pack
  bool packed_;
  bool exact_;
  Extent summary_, count_;
  uint32_t words_;
};

}  // namespace qact::core::cuda
