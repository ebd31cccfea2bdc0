// Which layers are small, and the launches of their forward direction.
#pragma once

#include "qact/core/cuda/counted.cuh"
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/small.cuh"

namespace qact::core::cuda {

// Channels of at most so many values in rows are settled by one block; longer ones too, if there
// are enough of them to occupy the device, or by clusters of blocks, if all of them find room at
// once. In columns a block has kSmallGroup channels: longer ones would leave too many
// multiprocessors idle.
inline constexpr int64_t kBriefBlock = 2048, kOneBlock = 8192;
inline constexpr int64_t kManyBlock = 32768, kLongBlock = 131072;
inline constexpr int64_t kManyBlocks = 96, kMostBlocks = 132;
inline constexpr int kSmallGroup = 4;
static_assert(2 * kLongBlock <= Short::kValues);  // SmallSpace counts in 32 bits

// How many blocks settle a long channel in rows; 0: too long, or not the right number of them.
inline int blocks_of(const Shape& shape) {
  const int64_t n = shape.context_size();
  if (shape.channels >= kManyBlocks && n <= kManyBlock) return 1;
  for (const int blocks : {1, 2, 4}) {
    const int64_t all = shape.channels * blocks;
    if (all < kManyBlocks || all > kMostBlocks || n > std::min(blocks, 2) * kLongBlock) continue;
    return blocks == 1 || runs_sm90("qact") ? blocks : 0;
  }
  return 0;
}

// run(std::integral_constant) with blocks_of(), which is not 0.
template <class Run>
void with_blocks(const Shape& shape, const Run& run) {
  switch (blocks_of(shape)) {
    case 1:
      return run(std::integral_constant<int, 1>());
    case 2:
      return run(std::integral_constant<int, 2>());
    default:
      return run(std::integral_constant<int, 4>());
  }
}

inline bool counted(const Shape& shape, const Quantile& quantile) {
  return shape.context_size() <= kCounted && quantile.exact_for(shape.context_size());
}

// Whether blocks or clusters can take a tensor's channels as they lie: one in rows, or kSmallGroup
// in columns.
inline bool one_launch(const Shape& shape, const View& x, const View& y) {
  const int64_t n = shape.context_size();
  const int bytes = x.dtype == DType::f32 ? 4 : 2;
  const auto both_pack = [&](int size) {
    return packs(shape, x, size, bytes) && packs(shape, y, size, bytes);
  };
  if (order_of(shape, x) == Order::columns) return n <= kBriefBlock && both_pack(kSmallGroup);
  return n <= kOneBlock || (both_pack(16 / bytes) && blocks_of(shape) > 0);
}

inline bool small(const LayerForward& call) {
  if (counted(call.shape, call.quantile)) return true;
  if (!one_launch(call.shape, call.x, call.y)) return false;
  const int64_t n = call.shape.context_size();
  const bool rows = order_of(call.shape, call.x) == Order::rows;
  if (rows && n <= kOneBlock) return true;
  if (n > kManyBlock && call.quantile.exact_for(n)) return false;  // one block would rank them
  return call.quantile.levels <= Short::kLevels;
}

// The codes, in the order of a tensor.
inline Results<uint8_t> code_results(const Shape& shape, const View& x, uint8_t* code) {
  if (order_of(shape, x) == Order::columns) {
    return {code, 1, shape.spatial * shape.channels, shape.channels,
            Divider(static_cast<uint32_t>(shape.spatial))};
  }
  return {code, shape.context_size(), shape.spatial, 1,
          Divider(static_cast<uint32_t>(shape.spatial))};
}

template <class T>
SmallCall<T> small_call(const LayerForward& call) {
  SmallCall<T> out;
  out.x = values_of<T>(call.shape, call.x);
  out.channel_stride = call.x.channel_stride;
  out.y = results_of<T>(call.shape, call.y);
  out.code = code_results(call.shape, call.x, call.code);
  out.density = {};
  out.plain = false;
  return out;
}

template <class T>
void run_counted(const char* what, const Shape& shape, const SmallCall<T>& call,
                 const SolveCall& solve, const Stream& stream) {
  launch(what, forward_counted<T>, dim3(static_cast<unsigned>(shape.channels)), kCounted, 0,
         static_cast<cudaStream_t>(stream.handle), call, solve);
}

template <class T>
void run_small(const char* what, const LayerForward& call, const SolveCall& solve,
               const Stream& stream) {
  const auto run =
      [&]<class Limit, int kSize, int kGroup, int kBlock, int kPacks, int kBlocks = 1>() {
        launch_clusters(what, forward_small<T, Limit, kSize, kGroup, kBlock, kPacks, kBlocks>,
                        static_cast<unsigned>(call.shape.channels / kGroup), kBlocks, kBlock,
                        sizeof(SmallSpace<Limit, kGroup, kBlock, kBlocks>),
                        static_cast<cudaStream_t>(stream.handle), small_call<T>(call), solve);
      };
  constexpr int kSize = 16 / sizeof(T);
  const int64_t n = call.shape.context_size();
  const bool brief = n <= kBriefBlock, packed = packs(call.shape, call.x, kSize, sizeof(T)) &&
                                                packs(call.shape, call.y, kSize, sizeof(T));
  if (order_of(call.shape, call.x) == Order::columns) {
    run.template operator()<Short, kSmallGroup, kSmallGroup, 1024, 2>();
  } else if (n > kOneBlock) {
    with_blocks(call.shape,
                [&](auto blocks) { run.template operator()<Long, kSize, 1, 1024, 0, blocks>(); });
  } else if (call.quantile.levels > Short::kLevels) {
    run.template operator()<Long, 1, 1, 512, 0>();
  } else if (packed) {
    brief ? run.template operator()<Short, kSize, 1, 256, 8 / kSize>()
          : run.template operator()<Short, kSize, 1, 512, 16 / kSize>();
  } else {
    run.template operator()<Short, 1, 1, 512, 0>();
  }
}

}  // namespace qact::core::cuda
