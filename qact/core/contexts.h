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

// Codes and tables are kept of contexts whose table takes no more room than their values do.
// Shorter ones are computed again from x. Int: a whole number, or one that is not known yet.
template <class Int>
bool keeps_codes(const Int& values, int64_t value_bytes) {
  return values * value_bytes >= static_cast<int64_t>(sizeof(CodeTable));
}

// The room for both: code_channels * batch * spatial bytes, a context's side by side, and tables of
// kCodeTableWords each.
template <class Int>
struct KeptContexts {
  Int code_channels = 0;
  Int tables = 0;
  bool all = true;  // false: x is needed as well
};

template <class Int>
KeptContexts<Int> kept_contexts(const Scope& scope, const Int& batch, const Int& channels,
                                const Int& spatial, int64_t value_bytes) {
  KeptContexts<Int> out;
  const auto add = [&](const Int& of, const Int& images) {
    if (of == 0) return;
    if (!keeps_codes<Int>(images * spatial, value_bytes)) {
      out.all = false;
      return;
    }
    out.code_channels += of;
    out.tables += of * ((batch + images - 1) / images);
  };
  add(Int(scope.image_channels), Int(1));
  const bool groups = scope.images > 0 && batch > scope.images;
  add(channels - scope.image_channels, groups ? Int(scope.images) : batch);
  return out;
}

}  // namespace qact::core
