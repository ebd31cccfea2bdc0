// The fused layer in every scope: contexts other than the whole batch's are calls of their own for
// some images. What is not kept of a context is computed again in the backward pass.
#include "qact/core/cpu/scope.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/context_parts.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/short_layer.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

// What one thread needs for contexts that are not kept, one after the other.
struct Scratch {
  std::vector<uint8_t> code;
  std::vector<int32_t> table;
  std::vector<double> stats;
  std::vector<int64_t> context;

  Scratch(const ContextSet& contexts, int64_t spatial, bool codes, bool tables, bool tracks)
      : code(codes ? contexts.channels() * contexts.images * spatial : 0),
        table(tables ? contexts.channels() * kCodeTableWords : 0),
        stats(contexts.channels() * kLayerStats),
        context(tracks ? contexts.channels() * kContextBins : 0) {}
};

// body(i, execution) for every context. Several are shared out among the threads; a lone one has
// all of them.
template <class MakeBody>
void for_each_context(const ContextSet& contexts, const Execution& execution,
                      const MakeBody& make) {
  if (contexts.channels() == 0) return;
  if (contexts.per_channel() == 1) return make()(0, execution);
  execution.run(contexts.per_channel(), 1, [&](int64_t begin, int64_t end) {
    const Execution alone{{}, execution.simd};
    auto body = make();
    for (int64_t i = begin; i < end; ++i) body(i, alone);
  });
}

// What is kept of contexts that were added up: their mean statistics and the sum of all.
class Tracked {
 public:
  Tracked(const LayerForward& call, const ContextSet& contexts)
      : call_(call),
        contexts_(contexts),
        stats_(contexts.per_channel() * contexts.channels() * kLayerStats) {
    if (call.context) std::fill_n(call.context, contexts.channels() * kContextBins, int64_t{0});
  }

  void add(int64_t i, const Scratch& of) {
    std::copy(of.stats.begin(), of.stats.end(), stats_.begin() + i * of.stats.size());
    if (!call_.context) return;
    const std::lock_guard lock(mutex_);  // sums of whole numbers have no order
    for (size_t b = 0; b < of.context.size(); ++b) call_.context[b] += of.context[b];
  }

  // In the order of the images, however many threads there were.
  void finish() const {
    const int64_t row = contexts_.channels() * kLayerStats;
    std::fill_n(call_.stats, row, 0.0);
    for (int64_t i = 0; i < contexts_.per_channel() - QACT_MUTANT("scope_stats_last"); ++i) {
      const double share =
          static_cast<double>(contexts_.images_of(i)) / static_cast<double>(contexts_.batch);
      for (int64_t s = 0; s < row; ++s) call_.stats[s] += share * stats_[i * row + s];
    }
  }

 private:
  const LayerForward& call_;
  const ContextSet& contexts_;
  std::vector<double> stats_;
  std::mutex mutex_;
};

// `tracked`: where statistics and contexts are added up, if anywhere.
void forward_each(const LayerForward& call, const ContextSet& contexts, Tracked* tracked,
                  const Execution& execution) {
  const bool kept = KeptPlaces(call.scope, call.shape, call.x.dtype, contexts).any;
  const bool shorts =
      cpu::is_short_context(call.quantile, contexts.images * call.shape.spatial, call.x.dtype);
  const bool tracks = tracked && call.context;
  cpu::with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_context(contexts, execution, [&] {
      return [&, scratch = Scratch(contexts, call.shape.spatial, !kept && !shorts, false, tracks),
              short_layer = cpu::ShortLayer<Real>(execution.simd)](int64_t i,
                                                                   const Execution& on) mutable {
        LayerForward own = context_part(call, contexts, i);
        if (!kept) own.code = scratch.code.data();
        own.stats = tracked || !shorts ? scratch.stats.data() : nullptr;
        own.context = tracks ? scratch.context.data() : nullptr;
        if (shorts) {
          short_layer.forward(own);
        } else {
          cpu::layer_forward_whole(own, on);
        }
        if (tracked) tracked->add(i, scratch);
      };
    });
  });
}

// body(begin, end) over the channels of a lone short context; threads get enough of them each.
template <class Body>
void for_each_channels(const ContextSet& contexts, const Execution& execution, const Body& body) {
  constexpr int64_t kChannels = 16;
  const int64_t groups = (contexts.channels() + kChannels - 1) / kChannels;
  execution.run(groups, 4, [&](int64_t begin, int64_t end) {
    body(begin * kChannels, std::min(end * kChannels, contexts.channels()));
  });
}

LayerForward channels_of(const LayerForward& call, int64_t begin, int64_t end) {
  LayerForward out = call;
  out.shape.channels = end - begin;
  out.x = call.x.from(0, begin);
  out.y = call.y.from(0, begin);
  out.weight_in = call.weight_in.from(begin);
  out.bias_in = call.bias_in.from(begin);
  out.weight_out = call.weight_out.from(begin);
  out.bias_out = call.bias_out.from(begin);
  out.stats += begin * kLayerStats;
  if (call.context) out.context += begin * kContextBins;
  return out;
}

void forward_others(const LayerForward& call, const Execution& execution) {
  const ContextSet contexts = other_contexts(call.scope, call.shape);
  if (contexts.channels() == 0) return;
  if (call.scope.images > 0) {
    Tracked tracked(call, contexts);
    forward_each(call, contexts, &tracked, execution);
    return tracked.finish();
  }
  LayerForward whole = context_part(call, contexts, 0);
  if (cpu::is_short_context(call.quantile, contexts.images * call.shape.spatial, call.x.dtype)) {
    return cpu::with_real(call.x.dtype, [&]<class Real>(Real) {
      for_each_channels(contexts, execution, [&](int64_t begin, int64_t end) {
        cpu::ShortLayer<Real>(execution.simd).forward(channels_of(whole, begin, end));
      });
    });
  }
  std::vector<uint8_t> code;
  if (!whole.code) {
    code.resize(contexts.channels() * whole.shape.context_size());
    whole.code = code.data();
  }
  cpu::layer_forward_whole(whole, execution);
}

// The forward pass of a part, for what the backward pass needs of it.
LayerForward again(const LayerBackward& part) {
  LayerForward out;
  out.quantile = part.quantile;
  out.eps = part.eps;
  out.shape = part.shape;
  out.x = part.x;
  out.weight_in = part.weight_in;
  out.bias_in = part.bias_in;
  return out;
}

void backward_each(const LayerBackward& call, const ContextSet& contexts,
                   const Execution& execution) {
  if (contexts.channels() == 0) return;
  const bool kept = KeptPlaces(call.scope, call.shape, call.grad_y.dtype, contexts).any;
  const int64_t row = 4 * contexts.channels();
  std::vector<double> affine(contexts.per_channel() * row);  // of every context
  const bool shorts =
      cpu::is_short_context(call.quantile, contexts.images * call.shape.spatial, call.grad_y.dtype);
  cpu::with_real(call.grad_y.dtype, [&]<class Real>(Real) {
    for_each_context(contexts, execution, [&] {
      return [&,
              scratch =
                  Scratch(contexts, call.shape.spatial, !kept && !shorts, !kept && !shorts, false),
              short_layer = cpu::ShortLayer<Real>(execution.simd)](int64_t i,
                                                                   const Execution& on) mutable {
        LayerBackward own = context_part(call, contexts, i);
        own.grad_affine = affine.data() + i * row;
        if (shorts) return short_layer.backward(own);
        if (!kept) {
          LayerForward forward = again(own);
          forward.code = scratch.code.data();
          forward.table = scratch.table.data();
          forward.stats = scratch.stats.data();
          cpu::layer_forward_whole(forward, on);
          own.code = forward.code;
          own.table = forward.table;
        }
        cpu::layer_backward_whole(own, on);
      };
    });
  });
  // In the order of the images, however many threads there were.
  double* sums = call.grad_affine + 4 * contexts.first;
  std::fill_n(sums, row, 0.0);
  for (int64_t i = QACT_MUTANT("scope_affine_first"); i < contexts.per_channel(); ++i) {
    for (int64_t s = 0; s < row; ++s) sums[s] += affine[i * row + s];
  }
}

}  // namespace

void layer_forward(const LayerForward& call, const Execution& execution) {
  forward_each(call, image_contexts(call.scope, call.shape), nullptr, execution);
  forward_others(call, execution);
}

void layer_backward(const LayerBackward& call, const Execution& execution) {
  backward_each(call, image_contexts(call.scope, call.shape), execution);
  backward_each(call, other_contexts(call.scope, call.shape), execution);
}

}  // namespace qact::core
