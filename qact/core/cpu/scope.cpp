// The fused layer in every scope: contexts other than the whole batch's are calls of their own for
// some images, whose levels and tables are computed again in the backward pass. Nothing but x is
// kept for them, and a context's values stay in the cache from one pass to the next.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/cpu/layer.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

// Channels [first, last) whose contexts are `images` consecutive images each.
struct Contexts {
  int64_t first, last;
  int64_t images, batch;

  int64_t channels() const { return last - first; }
  int64_t count() const { return (batch + images - 1) / images; }
  int64_t images_of(int64_t i) const { return std::min(images, batch - i * images); }
  Shape shape_of(int64_t i, int64_t spatial) const { return {images_of(i), channels(), spatial}; }
};

Contexts of_images(const Scope& scope, const Shape& shape) {
  return {0, scope.image_channels, 1, shape.batch};
}
Contexts of_rows(const Scope& scope, const Shape& shape) {
  return {scope.image_channels, shape.channels, scope.images_of(shape.batch), shape.batch};
}

// What one thread needs for one context after the other.
struct Scratch {
  std::vector<uint8_t> level;
  std::vector<int32_t> density;
  std::vector<double> stats;
  std::vector<int64_t> context;

  Scratch(const Contexts& contexts, int64_t spatial, bool densities, bool tracks)
      : level(contexts.channels() * contexts.images * spatial),
        density(densities ? contexts.channels() * kDensityNodes : 0),
        stats(contexts.channels() * kLayerStats),
        context(tracks ? contexts.channels() * kContextBins : 0) {}

  void lend(LayerForward& call) {
    call.level = level.data();
    call.density = density.empty() ? nullptr : density.data();
    call.stats = stats.data();
    call.context = context.empty() ? nullptr : context.data();
  }
};

// body(i, execution) for every context. Several are shared out among the threads; a lone one has
// all of them.
template <class MakeBody>
void for_each_context(const Contexts& contexts, const Execution& execution, const MakeBody& make) {
  if (contexts.channels() == 0) return;
  if (contexts.count() == 1) return make()(0, execution);
  execution.run(contexts.count(), 1, [&](int64_t begin, int64_t end) {
    const Execution alone{{}, execution.simd};
    auto body = make();
    for (int64_t i = begin; i < end; ++i) body(i, alone);
  });
}

LayerForward part(const LayerForward& call, const Contexts& contexts, int64_t i) {
  LayerForward out = call;
  const int64_t image = i * contexts.images, c = contexts.first;
  out.scope = {};
  out.shape = contexts.shape_of(i, call.shape.spatial);
  out.x = call.x.from(image, c);
  out.y = call.y.from(image, c);
  out.weight_in = call.weight_in.from(c);
  out.bias_in = call.bias_in.from(c);
  out.weight_out = call.weight_out.from(c);
  out.bias_out = call.bias_out.from(c);
  return out;
}

// What is kept of contexts that were added up: their mean statistics and the sum of all.
class Tracked {
 public:
  Tracked(const LayerForward& call, const Contexts& contexts)
      : call_(call),
        contexts_(contexts),
        stats_(contexts.count() * contexts.channels() * kLayerStats) {
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
    for (int64_t i = 0; i < contexts_.count() - QACT_MUTANT("scope_stats_last"); ++i) {
      const double share =
          static_cast<double>(contexts_.images_of(i)) / static_cast<double>(contexts_.batch);
      for (int64_t s = 0; s < row; ++s) call_.stats[s] += share * stats_[i * row + s];
    }
  }

 private:
  const LayerForward& call_;
  const Contexts& contexts_;
  std::vector<double> stats_;
  std::mutex mutex_;
};

void forward_images(const LayerForward& call, const Execution& execution) {
  const Contexts contexts = of_images(call.scope, call.shape);
  for_each_context(contexts, execution, [&] {
    return [&, scratch = Scratch(contexts, call.shape.spatial, false, false)](
               int64_t i, const Execution& on) mutable {
      LayerForward own = part(call, contexts, i);
      scratch.lend(own);
      cpu::layer_forward_whole(own, on);
    };
  });
}

void forward_rows(const LayerForward& call, const Execution& execution) {
  const Contexts contexts = of_rows(call.scope, call.shape);
  if (contexts.channels() == 0) return;
  if (call.scope.images == 0) return cpu::layer_forward_whole(part(call, contexts, 0), execution);
  Tracked tracked(call, contexts);
  for_each_context(contexts, execution, [&] {
    return [&, scratch = Scratch(contexts, call.shape.spatial, false, call.context != nullptr)](
               int64_t i, const Execution& on) mutable {
      LayerForward own = part(call, contexts, i);
      scratch.lend(own);
      cpu::layer_forward_whole(own, on);
      tracked.add(i, scratch);
    };
  });
  tracked.finish();
}

LayerBackward part(const LayerBackward& call, const Contexts& contexts, int64_t i) {
  LayerBackward out = call;
  const int64_t image = i * contexts.images, c = contexts.first;
  out.scope = {};
  out.shape = contexts.shape_of(i, call.shape.spatial);
  out.grad_y = call.grad_y.from(image, c);
  out.x = call.x.from(image, c);
  out.weight_in = call.weight_in.from(c);
  out.bias_in = call.bias_in.from(c);
  out.weight_out = call.weight_out.from(c);
  out.grad_x = call.grad_x.from(image, c);
  out.grad_affine = call.grad_affine + 4 * c;
  return out;
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

void backward_again(const LayerBackward& call, const Contexts& contexts,
                    const Execution& execution) {
  const int64_t row = 4 * contexts.channels();
  std::vector<double> affine(contexts.count() * row);  // of every context
  for_each_context(contexts, execution, [&] {
    return [&, scratch = Scratch(contexts, call.shape.spatial, true, false)](
               int64_t i, const Execution& on) mutable {
      LayerBackward own = part(call, contexts, i);
      LayerForward forward = again(own);
      scratch.lend(forward);
      cpu::layer_forward_whole(forward, on);
      own.level = scratch.level.data();
      own.density = scratch.density.data();
      own.stats = scratch.stats.data();
      own.grad_affine = affine.data() + i * row;
      cpu::layer_backward_whole(own, on);
    };
  });
  // In the order of the images, however many threads there were.
  double* sums = call.grad_affine + 4 * contexts.first;
  std::fill_n(sums, row, 0.0);
  for (int64_t i = QACT_MUTANT("scope_affine_first"); i < contexts.count(); ++i) {
    for (int64_t s = 0; s < row; ++s) sums[s] += affine[i * row + s];
  }
}

}  // namespace

void layer_forward(const LayerForward& call, const Execution& execution) {
  forward_images(call, execution);
  forward_rows(call, execution);
}

void layer_backward(const LayerBackward& call, const Execution& execution) {
  backward_again(call, of_images(call.scope, call.shape), execution);
  const Contexts rows = of_rows(call.scope, call.shape);
  if (rows.channels() == 0) return;
  if (call.scope.images > 0) return backward_again(call, rows, execution);
  cpu::layer_backward_whole(part(call, rows, 0), execution);
}

}  // namespace qact::core
