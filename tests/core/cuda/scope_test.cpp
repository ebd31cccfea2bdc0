// The entry points in every scope: contexts of images and of groups of images, those of the batch
// beside them, as the kernels have each of them alone; and what is added up over them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/core/cuda/layer_run.h"

namespace qact::core::testing {
namespace {

// Through layer_forward and layer_backward, with what contexts.h keeps.
struct ScopedRun {
  Tensor y, grad_x;
  std::vector<double> stats;
  std::vector<int64_t> context;
  std::vector<float> grad_affine;

  ScopedRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Scope& scope,
            bool track = true)
      : y(x), grad_x(x) {
    const Shape& shape = x.shape();
    const auto kept = kept_contexts(scope, shape, x.view().dtype);
    const int64_t rows = shape.channels - scope.image_channels;
    DeviceArray<uint8_t> code(kept.code_channels * shape.context_size());
    DeviceArray<int32_t> table(kept.tables * kCodeTableWords);
    DeviceArray<double> all_stats(rows * kLayerStats);
    DeviceArray<int64_t> all_counts(track ? rows * kContextBins : 0);
    DeviceArray<float> affine(shape.channels * 4);
    LayerForward forward;
    forward.scope = scope;
    forward.shape = shape;
    forward.x = x.view();
    forward.y = y.view();
    forward.weight_in = {affines.weight_in.data()};
    forward.bias_in = {affines.bias_in.data()};
    forward.weight_out = {affines.weight_out.data()};
    forward.bias_out = {affines.bias_out.data()};
    if (kept.tables > 0) forward.code = code.data(), forward.table = table.data();
    forward.stats = all_stats.data();
    if (track) forward.context = all_counts.data();
    run_with_scratch(cuda::layer_forward_scratch(forward),
                     [&](const cuda::Stream& stream) { cuda::layer_forward(forward, stream); });
    LayerBackward backward;
    backward.scope = scope;
    backward.shape = shape;
    backward.grad_y = grad_y.view();
    backward.weight_in = forward.weight_in;
    backward.bias_in = forward.bias_in;
    backward.weight_out = forward.weight_out;
    backward.code = forward.code;
    backward.table = forward.table;
    if (kept.x) backward.x = x.view();
    backward.grad_x = grad_x.view();
    run_with_scratch(cuda::layer_backward_scratch(backward), [&](const cuda::Stream& stream) {
      cuda::layer_backward(backward, affine.data(), stream);
    });
    stats = all_stats.values();
    context = all_counts.values();
    grad_affine = affine.values();
  }
};

// Some images as a batch of their own.
Tensor images_of(Tensor& x, Layout layout, int64_t first, int64_t images) {
  const int64_t spatial = x.shape().spatial;
  Tensor out({images, x.shape().channels, spatial}, x.view().dtype, layout);
  for (int64_t c = 0; c < x.shape().channels; ++c) {
    const std::vector<double> all = x.get(c);
    out.set(c, {all.begin() + first * spatial, all.begin() + (first + images) * spatial});
  }
  return out;
}

// Other paths may add up in another order.
void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  double off = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    off += (found[i] - expected[i]) * (found[i] - expected[i]);
    all += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(off), 1e-5 * std::sqrt(all));
}

// Contexts of `images` images of each channel [begin, end).
void expect_contexts(Tensor& x, Tensor& grad_y, Layout layout, const Affines& affines,
                     const ScopedRun& run, int64_t begin, int64_t end, int64_t images) {
  const Shape& shape = x.shape();
  const int64_t first_row = shape.channels - static_cast<int64_t>(run.stats.size()) / kLayerStats;
  std::vector<double> affine(4 * shape.channels), stats(run.stats.size());
  std::vector<int64_t> context(run.context.size());
  for (int64_t first = 0; first < shape.batch; first += images) {
    const int64_t own = std::min(images, shape.batch - first);
    Tensor part = images_of(x, layout, first, own), grad = images_of(grad_y, layout, first, own);
    const CudaLayerRun alone(part, grad, affines, {});
    for (int64_t c = begin; c < end; ++c) {
      const auto of_run = [&](const Tensor& all) {
        const std::vector<double> values = all.get(c);
        const auto at = values.begin() + first * shape.spatial;
        return std::vector<double>(at, at + own * shape.spatial);
      };
      const LayerFound found = alone.found(c);
      SCOPED_TRACE("channel " + std::to_string(c) + ", image " + std::to_string(first));
      expect_near(of_run(run.y), found.y);
      expect_near(of_run(run.grad_x), found.grad_x);
      for (int i = 0; i < 4; ++i) affine[4 * c + i] += alone.grad_affine[i * shape.channels + c];
      if (c < first_row) continue;
      const double share = static_cast<double>(own) / static_cast<double>(shape.batch);
      const int64_t row = c - first_row;
      for (int s = 0; s < kLayerStats; ++s) {
        stats[row * kLayerStats + s] += share * alone.stats[c * kLayerStats + s];
      }
      for (int b = 0; !context.empty() && b < kContextBins; ++b) {
        context[row * kContextBins + b] += alone.context[c * kContextBins + b];
      }
    }
  }
  for (int64_t c = begin; c < end; ++c) {
    for (int i = 0; i < 4; ++i) {
      const double expected = affine[4 * c + i];
      EXPECT_NEAR(run.grad_affine[i * shape.channels + c], expected,
                  1e-4 * (1 + std::abs(expected)));
    }
    if (c < first_row) continue;
    const int64_t row = c - first_row;
    for (int s = 0; s < kLayerStats; ++s) {
      const double expected = stats[row * kLayerStats + s];
      EXPECT_NEAR(run.stats[row * kLayerStats + s], expected, 1e-6 * (1 + std::abs(expected)));
    }
    for (int b = 0; !context.empty() && b < kContextBins; ++b) {
      EXPECT_EQ(run.context[row * kContextBins + b], context[row * kContextBins + b]);
    }
  }
}

// Sizes that are no multiple of anything, whose codes are not aligned, and that take every path of
// short contexts; a batch of one image, of one group and less.
TEST(CudaScope, EveryContextIsAsItIsAlone) {
  const Shape shapes[] = {{3, 5, 7},   {7, 4, 33},  {2, 3, 401},
                          {1, 3, 300}, {5, 8, 480}, {4, 6, 1000}};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      for (const Shape& shape : shapes) {
        Tensor x = filled(shape, Distribution::normal, 31, dtype, layout);
        Tensor grad_y = filled(shape, Distribution::normal, 32, dtype, layout);
        const Affines affines(shape.channels);
        const int64_t all = shape.channels;
        for (const Scope& scope : {Scope{all, 0}, Scope{all / 2, 0}, Scope{0, 2}, Scope{1, 3}}) {
          SCOPED_TRACE(std::string(name(dtype)) + " " + name(layout) + " " +
                       std::to_string(shape.batch) + "x" + std::to_string(all) + "x" +
                       std::to_string(shape.spatial) + ", " + std::to_string(scope.image_channels) +
                       " image channels, groups of " + std::to_string(scope.images));
          const ScopedRun run(x, grad_y, affines, scope, scope.images != 2);
          ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
          expect_contexts(x, grad_y, layout, affines, run, 0, scope.image_channels, 1);
          expect_contexts(x, grad_y, layout, affines, run, scope.image_channels, all,
                          scope.images_of(shape.batch));
          if (HasFailure()) return;
        }
      }
    }
  }
}

// All contexts once, in order; full sets together, and the remainder apart.
TEST(CudaScope, PartsAreAllContexts) {
  LayerForward call;
  float x = 0;
  call.x = {&x, DType::f32, 12, 4, 1};
  for (const auto& [batch, channels, images] : {std::array<int64_t, 3>{7, 3, 1},
                                                {7, 3, 3},
                                                {7, 3, 7},
                                                {20000, 3, 1},
                                                {20001, 1, 2},
                                                {3, 20000, 1},
                                                {5, 9000, 2}}) {
    call.shape = {batch, channels, 4};
    const ContextSet contexts{0, channels, images, batch};
    int64_t next = 0, of_images = 0;
    cuda::for_each_part(call, contexts, [&](const cuda::ForwardPart& part, int64_t first) {
      EXPECT_EQ(first, next);
      EXPECT_EQ(part.x.data, call.x.from(first * images, 0).data);
      EXPECT_TRUE(part.shape.batch == images || first + 1 == contexts.per_channel());
      EXPECT_LE(part.contexts().count(), std::max<int64_t>(8192, channels));
      next += part.sets;
      of_images += part.sets * part.shape.batch;
    });
    EXPECT_EQ(next, contexts.per_channel());
    EXPECT_EQ(of_images, batch);
  }
}

}  // namespace
}  // namespace qact::core::testing
