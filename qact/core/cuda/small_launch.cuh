// Which layers are small, and the launches of their forward direction.
#pragma once

#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/short.cuh"
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
inline int blocks_of(const Contexts& contexts) {
  const int64_t n = contexts.size();
  if (contexts.count() >= kManyBlocks && n <= kManyBlock) return 1;
  for (const int blocks : {1, 2, 4}) {
    const int64_t all = contexts.count() * blocks;
    if (all < kManyBlocks || all > kMostBlocks || n > std::min(blocks, 2) * kLongBlock) continue;
    return blocks == 1 || runs_sm90("qact") ? blocks : 0;
  }
  return 0;
}

// run(std::integral_constant) with blocks_of(), which is not 0.
template <class Run>
void with_blocks(const Contexts& contexts, const Run& run) {
  switch (blocks_of(contexts)) {
    case 1:
      return run(std::integral_constant<int, 1>());
    case 2:
      return run(std::integral_constant<int, 2>());
    default:
      return run(std::integral_constant<int, 4>());
  }
}

// Whether a warp ranks each context.
inline bool is_short(const Contexts& contexts, const Quantile& quantile) {
  return contexts.size() <= kShort && quantile.exact_for(contexts.size());
}

// run(std::integral_constant, blocks) with the values of a lane.
template <class Run>
void with_short(const Contexts& contexts, const Run& run) {
  const dim3 blocks(static_cast<unsigned>((contexts.count() + kShortWarps - 1) / kShortWarps));
  const auto each = (contexts.size() + kWarp - 1) / kWarp;
  if (each <= 1) return run(std::integral_constant<int, 1>(), blocks);
  if (each <= 2) return run(std::integral_constant<int, 2>(), blocks);
  if (each <= 4) return run(std::integral_constant<int, 4>(), blocks);
  run(std::integral_constant<int, kShort / kWarp>(), blocks);
}

// Whether packs of both tensors and of their codes can be loaded and stored.
inline bool all_pack(const Contexts& contexts, const View& x, const View& y, const uint8_t* code,
                     int size) {
  const int bytes = static_cast<int>(size_of(x.dtype));
  return packs(contexts, x, size, bytes) && packs(contexts, y, size, bytes) &&
         reinterpret_cast<uintptr_t>(code) % size == 0;
}

// Whether blocks or clusters can take a tensor's channels as they lie: one in rows, or kSmallGroup
// in columns.
inline bool one_launch(const Contexts& contexts, const View& x, const View& y,
                       const uint8_t* code) {
  const int64_t n = contexts.size();
  if (order_of(contexts, x) == Order::columns) {
    return n <= kBriefBlock && all_pack(contexts, x, y, code, kSmallGroup);
  }
  const int size = static_cast<int>(16 / size_of(x.dtype));
  return n <= kOneBlock || (all_pack(contexts, x, y, code, size) && blocks_of(contexts) > 0);
}

inline bool small(const ForwardPart& call) {
  const Contexts contexts = call.contexts();
  if (is_short(contexts, call.quantile)) return true;
  if (!one_launch(contexts, call.x, call.y, call.code)) return false;
  const int64_t n = contexts.size();
  const bool rows = order_of(contexts, call.x) == Order::rows;
  if (rows && n <= kOneBlock) return true;
  if (n > kManyBlock && call.quantile.exact_for(n)) return false;  // one block would rank them
  return call.quantile.levels <= Short::kLevels;
}

template <class T>
SmallCall<T> small_call(const ForwardPart& call) {
  const Contexts contexts = call.contexts();
  SmallCall<T> out;
  out.x = values_of<T>(contexts, call.x);
  out.y = results_of<T>(contexts, call.y);
  out.code = code_results(contexts, order_of(contexts, call.x), call.code);
  out.density = {};
  out.plain = false;
  return out;
}

// Both directions' inner norm, and the weight and eps of the outer one.
template <class Call>
SolveCall layer_solve(const Call& call) {
  const Contexts contexts = call.contexts();
  SolveCall out(call.quantile, contexts.size());
  out.norm_in = {true, call.eps, call.weight_in, call.bias_in, channels_of(contexts)};
  out.eps = call.eps;
  out.weight_out = call.weight_out;
  return out;
}

template <class T>
void run_short(const char* what, const Contexts& contexts, const SmallCall<T>& call,
               const SolveCall& solve, const Stream& stream) {
  with_short(contexts, [&](auto each, dim3 blocks) {
    launch(what, forward_short<T, each>, blocks, kShortWarps * kWarp, 0,
           static_cast<cudaStream_t>(stream.handle), call, solve,
           static_cast<uint32_t>(contexts.count()));
  });
}

template <class T>
void run_small(const char* what, const ForwardPart& call, const SolveCall& solve,
               const Stream& stream) {
  const Contexts contexts = call.contexts();
  const auto run =
      [&]<class Limit, int kSize, int kGroup, int kBlock, int kPacks, int kBlocks = 1>() {
        launch_clusters(what, forward_small<T, Limit, kSize, kGroup, kBlock, kPacks, kBlocks>,
                        static_cast<unsigned>(contexts.count() / kGroup), kBlocks, kBlock,
                        sizeof(SmallSpace<Limit, kGroup, kBlock, kBlocks>),
                        static_cast<cudaStream_t>(stream.handle), small_call<T>(call), solve);
      };
  constexpr int kSize = 16 / sizeof(T);
  const int64_t n = contexts.size();
  const bool brief = n <= kBriefBlock,
             packed = all_pack(contexts, call.x, call.y, call.code, kSize);
  if (order_of(contexts, call.x) == Order::columns) {
    run.template operator()<Short, kSmallGroup, kSmallGroup, 1024, 2>();
  } else if (n > kOneBlock) {
    with_blocks(contexts,
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
