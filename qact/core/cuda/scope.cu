// The fused layer in every scope: its contexts part by part, and what is added up over them.
#include "qact/core/context.h"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/scope.h"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr int kBlock = 256;

// out[row][i] is the sum over the sets, in their order, of share * from[row][set][i], beside what
// it was unless this `begins` it.
template <class T, class Sum>
__global__ void add_sets(const T* from, uint32_t sets, uint32_t count, Sum share, bool begins,
                         T* out, int64_t pitch) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  from += int64_t{blockIdx.y} * sets * count + i;
  out += blockIdx.y * pitch + i;
  Sum sum = begins && !QACT_MUTANT("cuda_add_sets_begin") ? Sum{0} : static_cast<Sum>(*out);
#pragma unroll 16  // loads that a thread waits for at once
  for (uint32_t s = 0; s < sets; ++s) {
    sum += share * static_cast<Sum>(from[int64_t{s} * count]);
  }
  *out = static_cast<T>(sum);
}

template <class T, class Sum>
void add(const char* what, const T* from, int64_t sets, int64_t count, Sum share, bool begins,
         T* out, int64_t pitch, unsigned rows, const Stream& stream) {
  launch(what, add_sets<T, Sum>, dim3(static_cast<unsigned>((count + kBlock - 1) / kBlock), rows),
         kBlock, 0, static_cast<cudaStream_t>(stream.handle), from, static_cast<uint32_t>(sets),
         static_cast<uint32_t>(count), share, begins, out, pitch);
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

Stream beyond(const Stream& stream, size_t bytes) {
  return {stream.handle, static_cast<char*>(stream.scratch) + bytes};
}

// Statistics and contexts of each of a part's contexts, which are to be added up.
struct Tracked {
  size_t stats_bytes, bytes;

  explicit Tracked(const ForwardPart& part) {
    const auto count = static_cast<size_t>(part.contexts().count());
    stats_bytes = round_up(count * sizeof(LayerStats));
    bytes = stats_bytes + (part.context ? round_up(count * kContextBins * sizeof(int64_t)) : 0);
  }
};

size_t sums_bytes(const BackwardPart& part) {
  return round_up(4 * sizeof(float) * static_cast<size_t>(part.contexts().count()));
}

}  // namespace

size_t layer_forward_scratch(const LayerForward& call) {
  size_t bytes = 0;
  for_each_part(call, image_contexts(call.scope, call.shape),
                [&](const ForwardPart& part, int64_t) {
                  bytes = std::max(bytes, forward_part_scratch(part));
                });
  const ContextSet others = other_contexts(call.scope, call.shape);
  for_each_part(call, others, [&](const ForwardPart& part, int64_t) {
    const size_t tracked = others.per_channel() > 1 ? Tracked(part).bytes : 0;
    bytes = std::max(bytes, tracked + forward_part_scratch(part));
  });
  return bytes;
}

void layer_forward(const LayerForward& call, const Stream& stream) {
  for_each_part(call, image_contexts(call.scope, call.shape), [&](ForwardPart part, int64_t) {
    part.stats = nullptr;
    part.context = nullptr;
    forward_part(part, stream);
  });
  const ContextSet others = other_contexts(call.scope, call.shape);
  for_each_part(call, others, [&](ForwardPart part, int64_t first) {
    if (others.per_channel() == 1) return forward_part(part, stream);
    const Tracked tracked(part);
    part.stats = static_cast<double*>(stream.scratch);
    if (call.context) {
      part.context =
          reinterpret_cast<int64_t*>(static_cast<char*>(stream.scratch) + tracked.stats_bytes);
    }
    forward_part(part, beyond(stream, tracked.bytes));
    const double share = static_cast<double>(part.shape.batch) / static_cast<double>(others.batch);
    add("quantile_layer", part.stats, part.sets, others.channels() * kLayerStats, share, first == 0,
        call.stats, 0, 1, stream);
    if (!call.context) return;
    add("quantile_layer", part.context, part.sets, others.channels() * kContextBins, int64_t{1},
        first == 0, call.context, 0, 1, stream);
  });
}

size_t layer_backward_scratch(const LayerBackward& call) {
  size_t bytes = 0;
  for (const ContextSet& contexts :
       {image_contexts(call.scope, call.shape), other_contexts(call.scope, call.shape)}) {
    for_each_part(call, contexts, [&](const BackwardPart& part, int64_t) {
      bytes = std::max(bytes, sums_bytes(part) + backward_part_scratch(part));
    });
  }
  return bytes;
}

void layer_backward(const LayerBackward& call, float* grad_affine, const Stream& stream) {
  for (const ContextSet& contexts :
       {image_contexts(call.scope, call.shape), other_contexts(call.scope, call.shape)}) {
    const AffineRows all{grad_affine + contexts.first, call.shape.channels};
    for_each_part(call, contexts, [&](const BackwardPart& part, int64_t first) {
      if (contexts.per_channel() == 1) return backward_part(part, all, stream);
      const AffineRows sums{static_cast<float*>(stream.scratch), part.contexts().count()};
      backward_part(part, sums, beyond(stream, sums_bytes(part)));
      add("quantile_layer_backward", sums.data, part.sets, contexts.channels(), 1.0, first == 0,
          all.data, all.pitch, 4, stream);
    });
  }
}

}  // namespace qact::core::cuda
