// The contexts that a scope makes of a batch, and what is kept of them for the backward pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/codes.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

// Channels [first, last) whose contexts are `images` consecutive images each, the last one the
// remainder.
struct ContextSet {
  int64_t first, last;
  int64_t images, batch;

  int64_t channels() const { return last - first; }
  int64_t per_channel() const {
    return (batch + (QACT_MUTANT("contexts_last") ? 0 : images - 1)) / images;
  }
  int64_t images_of(int64_t i) const { return std::min(images, batch - i * images); }
};

inline ContextSet image_contexts(const Scope& scope, const Shape& shape) {
  return {0, scope.image_channels, 1, shape.batch};
}
inline ContextSet other_contexts(const Scope& scope, const Shape& shape) {
  return {scope.image_channels, shape.channels, scope.images_of(shape.batch), shape.batch};
}

// What is kept for the backward pass: never more than x and one byte a value. Codes and tables of
// contexts whose table takes no more room than their values do; x, where some contexts are shorter,
// since those are computed again; and beside x only what makes one byte a value. Int: a whole
// number, or one that is not known yet.
template <class Int>
struct KeptContexts {
  bool images = false, others = false;  // whether codes of either set are kept
  bool x = false;
  Int code_channels = 0;  // * batch * spatial bytes, a context's side by side
  Int tables = 0;         // of kCodeTableWords
};

// Beside x, what is kept is never more than a byte a value: else it is x alone.
template <class Int>
KeptContexts<Int> no_more_than_bytes(const KeptContexts<Int>& kept, const Int& batch,
                                     const Int& channels, const Int& spatial) {
  constexpr int64_t kTable = sizeof(CodeTable);
  const Int values = batch * spatial;
  if (!kept.x || kept.code_channels * values + kept.tables * kTable <= channels * values) {
    return kept;
  }
  KeptContexts<Int> out;
  out.x = true;
  return out;
}

template <class Int>
KeptContexts<Int> kept_contexts(const Scope& scope, const Int& batch, const Int& channels,
                                const Int& spatial, int64_t value_bytes) {
  constexpr int64_t kBytes = sizeof(CodeTable);
  KeptContexts<Int> out;
  const auto add = [&](const Int& of, const Int& images, bool& kept) {
    if (of == 0) return;
    kept = images * spatial * value_bytes >= kBytes;
    out.x |= !kept;
    if (!kept) return;
    out.code_channels += of;
    out.tables += of * ((batch + images - 1) / images);
  };
  add(Int(scope.image_channels), Int(1), out.images);
  const bool groups = scope.images > 0 && batch > scope.images;
  add(channels - scope.image_channels, groups ? Int(scope.images) : batch, out.others);
  return no_more_than_bytes(out, batch, channels, spatial);
}

inline KeptContexts<int64_t> kept_contexts(const Scope& scope, const Shape& shape, DType dtype) {
  return kept_contexts<int64_t>(scope, shape.batch, shape.channels, shape.spatial, size_of(dtype));
}

}  // namespace qact::core
