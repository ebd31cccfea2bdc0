// A call of the fused layer cut into contexts: what it is for some of them alone.
#pragma once

#include <cstdint>

#include "qact/core/contexts.h"
#include "qact/core/mutant.h"

namespace qact::core {

// Where a set's codes and tables lie among those of both, or whether they are kept at all.
struct KeptPlaces {
  bool any = false;
  int64_t first_code = 0, first_table = 0;

  KeptPlaces(const Scope& scope, const Shape& shape, DType dtype, const ContextSet& contexts) {
    const auto kept = kept_contexts(scope, shape, dtype);
    const ContextSet images = image_contexts(scope, shape);
    const bool of_images = contexts.last <= images.last;
    any = of_images ? kept.images : kept.others;
    if (of_images || !kept.images) return;
    first_code = QACT_MUTANT("kept_first_code") ? 0 : images.channels() * shape.context_size();
    first_table = images.channels() * images.per_channel();
  }
  // Of the i-th context of each channel.
  int64_t code(const ContextSet& contexts, int64_t i, int64_t spatial) const {
    return first_code + i * contexts.channels() * contexts.images * spatial;
  }
  int64_t table(const ContextSet& contexts, int64_t i) const {
    return (first_table + i * contexts.channels()) * kCodeTableWords;
  }
};

// The call for the i-th context of each of a set's channels. Its stats and its running context are
// still those of all.
template <class Call>
Call context_part(const Call& call, const View& values, const ContextSet& contexts, int64_t i) {
  Call out = call;
  const int64_t image = i * contexts.images, c = contexts.first;
  out.scope = {};
  out.shape = {contexts.images_of(i), contexts.channels(), call.shape.spatial};
  out.x = call.x.from(image, c);
  out.weight_in = call.weight_in.from(c);
  out.bias_in = call.bias_in.from(c);
  out.weight_out = call.weight_out.from(c);
  const KeptPlaces kept(call.scope, call.shape, values.dtype, contexts);
  const bool any = kept.any && call.code;
  out.code = any ? call.code + kept.code(contexts, i, call.shape.spatial) : nullptr;
  out.table = any && call.table ? call.table + kept.table(contexts, i) : nullptr;
  return out;
}

inline LayerForward context_part(const LayerForward& call, const ContextSet& contexts, int64_t i) {
  LayerForward out = context_part(call, call.x, contexts, i);
  out.y = call.y.from(i * contexts.images, contexts.first);
  out.bias_out = call.bias_out.from(contexts.first);
  return out;
}

inline LayerBackward context_part(const LayerBackward& call, const ContextSet& contexts,
                                  int64_t i) {
  LayerBackward out = context_part(call, call.grad_y, contexts, i);
  out.grad_y = call.grad_y.from(i * contexts.images, contexts.first);
  out.grad_x = call.grad_x.from(i * contexts.images, contexts.first);
  return out;
}

}  // namespace qact::core
