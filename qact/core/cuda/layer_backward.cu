// The fused layer's backward pass, as core/cpu/layer_backward.cpp has it: four sums over a
// channel's gradient and codes, then one pass that writes. Contexts too short for a table are
// ranked again.
#include "qact/core/cuda/backward_columns.cuh"
#include "qact/core/cuda/backward_short.cuh"
#include "qact/core/cuda/backward_small.cuh"
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/small_launch.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr const char* kWhat = "quantile_layer_backward";
constexpr int kGroup = 32;                               // channels of a block in columns
constexpr int kLongThreads = 1024, kLooseThreads = 256;  // the latter of values one at a time

bool fits_one_launch(const BackwardPart& call) {
  return one_launch(call.contexts(), call.grad_y, call.grad_x, call.code);
}

bool small(const BackwardPart& call) {
  return call.shape.context_size() <= kShort || fits_one_launch(call);
}

// Values that one instruction loads.
int pack_size(const BackwardPart& call) {
  const Contexts contexts = call.contexts();
  const bool columns = order_of(contexts, call.grad_y) == Order::columns;
  const int size = columns ? kColumnPack : static_cast<int>(16 / size_of(call.grad_y.dtype));
  return all_pack(contexts, call.grad_y, call.grad_x, call.code, size) ? size : 1;
}

Extent sums_extent(const BackwardPart& call) {
  const Contexts contexts = call.contexts();
  const Order order = order_of(contexts, call.grad_y);
  const int64_t groups =
      order == Order::rows ? contexts.count() : (contexts.count() + kGroup - 1) / kGroup;
  return extent_of(contexts, order, pack_size(call), groups, order == Order::rows ? 1056 : 264,
                   order == Order::rows ? 4096 : 512);
}

template <class T, int kSize>
void run_rows(const BackwardPart& call, const GradCall<T>& grad, const Stream& stream) {
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  const Extent extent = sums_extent(call);
  GradSums* parts = static_cast<GradSums*>(stream.scratch);
  const dim3 grid(extent.parts, static_cast<unsigned>(call.contexts().count()));
  launch(kWhat, sum_rows<T, kSize>, grid, kGradThreads, 0, handle, grad, extent, parts);
  launch_next(kWhat, apply_rows<T, kSize>, grid, kGradThreads, 0, handle, grad, extent, parts);
}

template <class T, int kSize>
void run_columns(const BackwardPart& call, const GradCall<T>& grad, const Stream& stream) {
  const auto handle = static_cast<cudaStream_t>(stream.handle);
  const auto channels = static_cast<unsigned>(call.contexts().count());
  const Extent extent = sums_extent(call);
  GradSums* parts = static_cast<GradSums*>(stream.scratch);
  GradMap* maps = reinterpret_cast<GradMap*>(parts + int64_t{channels} * extent.parts);
  const dim3 grid((channels + kGroup - 1) / kGroup, extent.parts);
  launch(kWhat, sum_columns<T, kGroup, kSize>, grid, kColumnThreads,
         sizeof(SumTables<kGroup, kSize>), handle, grad, extent, parts);
  launch_next(kWhat, merge_columns_parts, dim3(channels), kMergeThreads, 0, handle, grad.solve,
              parts, extent.parts, maps);
  launch_next(kWhat, apply_columns<T, kGroup, kSize>, grid, kColumnThreads,
              sizeof(ColumnTables<GradRow, kGroup, kSize>), handle, grad, extent, maps);
}

template <class T>
void run_small(const BackwardPart& call, const GradCall<T>& grad, const Stream& stream) {
  const Contexts contexts = call.contexts();
  const Order order = order_of(contexts, call.grad_y);
  const SmallGrad<T> tensors{results_of<T>(contexts, call.grad_y),
                             results_of<T>(contexts, call.grad_x),
                             code_results(contexts, order, const_cast<uint8_t*>(call.code))};
  const auto run = [&]<int kSize, int kGroup, int kBlock, int kPacks, int kBlocks = 1>() {
    launch_clusters(kWhat, backward_small<T, kSize, kGroup, kBlock, kPacks, kBlocks>,
                    static_cast<unsigned>(contexts.count() / kGroup), kBlocks, kBlock, 0,
                    static_cast<cudaStream_t>(stream.handle), tensors, grad.solve);
  };
  constexpr int kSize = 16 / sizeof(T);
  const int64_t n = contexts.size();
  const bool brief = n <= kBriefBlock, packed = pack_size(call) > 1;
  if (order == Order::columns) {
    fits_one_launch(call) ? run.template operator()<kSmallGroup, kSmallGroup, 512, 4>()
                          : run.template operator()<1, 1, kLooseThreads, 0>();
  } else if (n > kOneBlock) {
    with_blocks(contexts,
                [&](auto blocks) { run.template operator()<kSize, 1, kLongThreads, 0, blocks>(); });
  } else if (packed) {
    brief ? run.template operator()<kSize, 1, 256, 8 / kSize>()
          : run.template operator()<kSize, 1, 512, 16 / kSize>();
  } else {
    run.template operator()<1, 1, kLooseThreads, 0>();
  }
}

// From codes and tables.
size_t scratch_by_codes(const BackwardPart& call) {
  if (small(call)) return 0;
  return call.contexts().count() * (sizeof(GradSums) * sums_extent(call).parts + sizeof(GradMap));
}

GradSolve grad_solve(const BackwardPart& call, const AffineRows& grad_affine) {
  const double n = static_cast<double>(call.shape.context_size() - QACT_MUTANT("cuda_grad_n"));
  return {1.0 / call.quantile.levels,
          call.eps,
          n,
          1 / n,
          channels_of(call.contexts()),
          call.weight_in,
          call.weight_out,
          call.table,
          grad_affine.data,
          grad_affine.pitch};
}

void run_by_codes(const BackwardPart& call, const AffineRows& grad_affine, const Stream& stream) {
  const Contexts contexts = call.contexts();
  with_type(call.grad_y.dtype, [&]<class T>(Type<T>) {
    GradCall<T> grad;
    grad.dy = static_cast<const T*>(call.grad_y.data);
    grad.dx = static_cast<T*>(call.grad_x.data);
    grad.code = call.code;
    grad.dy_layout = layout_of(contexts, call.grad_y);
    grad.dx_layout = layout_of(contexts, call.grad_x);
    grad.code_layout = code_layout(contexts, order_of(contexts, call.grad_y));
    grad.solve = grad_solve(call, grad_affine);
    if (small(call)) return run_small(call, grad, stream);
    const bool packed = pack_size(call) > 1;
    if (order_of(contexts, call.grad_y) == Order::rows) {
      packed ? run_rows<T, 16 / sizeof(T)>(call, grad, stream) : run_rows<T, 1>(call, grad, stream);
    } else {
      packed ? run_columns<T, kColumnPack>(call, grad, stream)
             : run_columns<T, 1>(call, grad, stream);
    }
  });
}

// From x alone: contexts that a warp ranks.
bool ranks_again(const BackwardPart& call) {
  return !call.table && is_short(call.contexts(), call.quantile);
}

void run_short_gradient(const BackwardPart& call, const AffineRows& grad_affine,
                        const Stream& stream) {
  const Contexts contexts = call.contexts();
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    const ShortGrad<T> grad{values_of<T>(contexts, call.x),
                            results_of<const T>(contexts, call.grad_y),
                            results_of<T>(contexts, call.grad_x)};
    with_short(contexts, [&](auto each, dim3 blocks) {
      launch(kWhat, backward_short<T, each>, blocks, kShortWarps * kWarp, 0,
             static_cast<cudaStream_t>(stream.handle), grad, layer_solve(call),
             grad_solve(call, grad_affine), static_cast<uint32_t>(contexts.count()));
    });
  });
}

// Where no table was kept: the forward pass again, whose output makes room for the gradient.
struct Again {
  ForwardPart forward;
  BackwardPart backward;
  size_t rest;  // where the passes' own scratch memory begins

  Again(const BackwardPart& call, void* scratch) : backward(call) {
    const auto round_up = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
    char* at = static_cast<char*>(scratch);
    const auto take = [&](size_t bytes) { return std::exchange(at, at + round_up(bytes)); };
    forward.quantile = call.quantile;
    forward.eps = call.eps;
    forward.shape = call.shape;
    forward.sets = call.sets;
    forward.x = call.x;
    forward.y = call.grad_x;
    forward.weight_in = call.weight_in;
    forward.bias_in = call.bias_in;
    forward.weight_out = call.weight_out;
    const Contexts contexts = call.contexts();
    forward.table = reinterpret_cast<int32_t*>(take(contexts.count() * sizeof(CodeTable)));
    forward.code = reinterpret_cast<uint8_t*>(take(contexts.values()));
    backward.table = forward.table;
    backward.code = forward.code;
    rest = at - static_cast<char*>(scratch);
  }
};

}  // namespace

size_t backward_part_scratch(const BackwardPart& call) {
  if (call.table) return scratch_by_codes(call);
  if (ranks_again(call)) return 0;
  const Again again(call, nullptr);
  return again.rest +
         std::max(forward_part_scratch(again.forward), scratch_by_codes(again.backward));
}

void backward_part(const BackwardPart& call, const AffineRows& grad_affine, const Stream& stream) {
  if (call.table) return run_by_codes(call, grad_affine, stream);
  if (ranks_again(call)) return run_short_gradient(call, grad_affine, stream);
  const Again again(call, stream.scratch);
  const Stream rest{stream.handle, static_cast<char*>(stream.scratch) + again.rest};
  forward_part(again.forward, rest);
  run_by_codes(again.backward, grad_affine, rest);
}

}  // namespace qact::core::cuda
