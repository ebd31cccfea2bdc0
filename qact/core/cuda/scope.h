// The contexts that kernels work on at a time. To them each context is a channel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/context_parts.h"
#include "qact/core/cuda/cuda.h"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// One of each channel of a batch, or of several sets of `shape.batch` images each.
struct Contexts {
  Shape shape;  // of one set
  int64_t sets = 1;

  Contexts(const Shape& of, int64_t n = 1) : shape(of), sets(n) {}

  int64_t count() const { return sets * shape.channels; }
  int64_t size() const { return shape.context_size(); }
  int64_t values() const { return count() * size(); }
};

// A call for some sets that lie one after the other, as it is for the first of them. What belongs
// to a context, tables and statistics, is there for the contexts of all, set by set.
template <class Call>
struct Part : Call {
  int64_t sets = 1;

  Contexts contexts() const { return {this->shape, sets}; }
};
using ForwardPart = Part<LayerForward>;
using BackwardPart = Part<LayerBackward>;

// visit(part, its first set) for all contexts: so many at a time that they fill any GPU, and that
// the memory for their tables stays small. Short ones have none, nor have images' a running
// context.
template <class Call, class Visit>
void for_each_part(const Call& call, const ContextSet& contexts, const Visit& visit) {
  constexpr int64_t kMostContexts = 8192, kMostShort = 65536, kMostValues = int64_t{1} << 26;
  if (contexts.channels() == 0) return;
  const int64_t whole = contexts.batch / contexts.images, channels = contexts.channels();
  const int64_t values = contexts.images * call.shape.spatial;
  const bool short_images = contexts.last <= call.scope.image_channels && values <= kExactLimit &&
                            call.quantile.exact_for(values);
  const int64_t most =
      std::min(short_images ? kMostShort : kMostContexts, kMostValues / values) / channels;
  for (int64_t i = 0; i < contexts.per_channel();) {
    const int64_t sets = std::clamp<int64_t>(whole - i, 1, std::max<int64_t>(most, 1));
    visit(Part<Call>{context_part(call, contexts, i), sets}, i);
    i += sets + QACT_MUTANT("cuda_parts_skipped");
  }
}

// stats and context of a part are optional. Where a warp ranks each context (short.cuh), codes are
// levels, and there is no table.
size_t forward_part_scratch(const ForwardPart& part);
void forward_part(const ForwardPart& part, const Stream& stream);

// The affine gradients of each context: four rows, `pitch` numbers apart.
struct AffineRows {
  float* data;
  int64_t pitch;
};
size_t backward_part_scratch(const BackwardPart& part);
void backward_part(const BackwardPart& part, const AffineRows& grad_affine, const Stream& stream);

}  // namespace qact::core::cuda
