// Contexts of images and of groups of images, each held against the oracle, beside those of the
// batch in the same call.
#include <gtest/gtest.h>

#include <algorithm>

#include "qact/core/cpu/dispatch.h"
#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

// The values of some images, of every channel.
Tensor images_of(const Tensor& x, DType dtype, Layout layout, int64_t first, int64_t images) {
  const int64_t spatial = x.shape().spatial;
  Tensor out({images, x.shape().channels, spatial}, dtype, layout);
  for (int64_t c = 0; c < x.shape().channels; ++c) {
    const std::vector<double> all = x.get(c);
    out.set(c, {all.begin() + first * spatial, all.begin() + (first + images) * spatial});
  }
  return out;
}

std::vector<double> images_of(const std::vector<double>& all, int64_t spatial, int64_t first,
                              int64_t images) {
  return {all.begin() + first * spatial, all.begin() + (first + images) * spatial};
}

// A batch in some scope, and what its contexts should be.
struct Scoped {
  DType dtype;
  Layout layout;
  Quantile quantile;
  Scope scope;
  Tensor x, grad_y;
  Affines affines;

  Scoped(const Shape& shape, const Scope& of, DType type = DType::f32,
         Layout lies = Layout::contiguous, const Quantile& q = {},
         Distribution distribution = Distribution::normal)
      : dtype(type),
        layout(lies),
        quantile(q),
        scope(of),
        x(filled(shape, distribution, 131, type, lies)),
        grad_y(filled(shape, Distribution::normal, 132, type, lies)),
        affines(shape.channels) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      grad_y.set(c, with_trend(grad_y.get(c), x.get(c)));
    }
  }

  const Shape& shape() const { return x.shape(); }
  LayerRun run(const Execution& execution = threads(1)) {
    return LayerRun(x, grad_y, affines, quantile, execution, layout, 1e-5, scope);
  }
  // These images as a batch of their own.
  LayerRun alone(int64_t first, int64_t images) {
    Tensor part = images_of(x, dtype, layout, first, images);
    Tensor grad = images_of(grad_y, dtype, layout, first, images);
    return LayerRun(part, grad, affines, quantile, threads(1), layout);
  }
};

// A channel whose contexts are `images` images: each against the oracle, with the levels that its
// images get as a batch of their own; and affine gradients that are added up in image order.
void expect_contexts(Scoped& given, const LayerRun& run, int64_t c, int64_t images) {
  const int64_t spatial = given.shape().spatial;
  double affine[4] = {};
  for (int64_t first = 0; first < given.shape().batch; first += images) {
    SCOPED_TRACE("channel " + std::to_string(c) + " from image " + std::to_string(first));
    const int64_t own = std::min(images, given.shape().batch - first);
    const LayerRun alone = given.alone(first, own);
    LayerFound found = alone.found(c);
    found.y = images_of(run.y.get(c), spatial, first, own);
    found.grad_x = images_of(run.grad_x.get(c), spatial, first, own);
    const LayerCase oracle{images_of(given.x.get(c), spatial, first, own),
                           images_of(given.grad_y.get(c), spatial, first, own), given.affines.of(c),
                           given.dtype, given.quantile.exact_for(own * spatial)};
    expect_levels(oracle, found);
    expect_norms(oracle, found);
    expect_gradient(oracle, found);
    for (int i = 0; i < 4; ++i) affine[i] += alone.grad_affine[4 * c + i];
    if (::testing::Test::HasFailure()) return;
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run.grad_affine[4 * c + i], affine[i]) << i;
}

void expect_scoped(Scoped& given) {
  const LayerRun run = given.run();
  ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
  for (int64_t c = 0; c < given.shape().channels; ++c) {
    const bool image = c < given.scope.image_channels;
    expect_contexts(given, run, c, image ? 1 : given.scope.images_of(given.shape().batch));
    if (::testing::Test::HasFailure()) return;
  }
}

// Sizes that are no multiple of anything; contexts ranked exactly and by bins.
TEST(Scope, EveryContextIsTheOraclesOwn) {
  const Shape shapes[] = {{3, 5, 7}, {5, 3, 2}, {7, 4, 33}, {2, 3, 401}, {1, 3, 300}};
  for (const Shape& shape : shapes) {
    const int64_t all = shape.channels;
    for (const Scope& scope : {Scope{all, 0}, Scope{all / 2, 0}, Scope{0, 2}, Scope{1, 3}}) {
      for (const Layout layout : kLayouts) {
        SCOPED_TRACE(std::string(name(layout)) + " " + std::to_string(shape.batch) + "x" +
                     std::to_string(shape.spatial) + ", image channels " +
                     std::to_string(scope.image_channels) + ", images " +
                     std::to_string(scope.images));
        Scoped given(shape, scope, DType::f32, layout);
        expect_scoped(given);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Scope, InEveryTypeAndAlgorithm) {
  for (const DType dtype : kDTypes) {
    for (const Algorithm algorithm : {Algorithm::exact, Algorithm::binned}) {
      for (const Distribution distribution : {Distribution::ties, Distribution::heavy_tailed}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + name(distribution));
        Scoped given({3, 4, 290}, {2, 2}, dtype, Layout::contiguous, with(algorithm), distribution);
        expect_scoped(given);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Scope, AllImagesInOneContextAreTheBatch) {
  Scoped batch({6, 3, 50}, {});
  const LayerRun expected = batch.run();
  for (const int64_t images : {6, 100}) {
    Scoped given({6, 3, 50}, {0, images});
    const LayerRun run = given.run();
    EXPECT_TRUE(run.y == expected.y && run.grad_x == expected.grad_x);
    EXPECT_EQ(run.grad_affine, expected.grad_affine);
    EXPECT_EQ(run.context, expected.context);
  }
}

// The rows that are kept are those of the channels that are not ranked in their image.
TEST(Scope, KeepsWhatTheBatchKeepsOfTheOtherChannels) {
  const Shape shape{6, 5, 60};
  Scoped half(shape, {2, 0}), batch(shape, {});
  const LayerRun run = half.run(), all = batch.run();
  for (int64_t row = 0; row < 3; ++row) {
    for (int s = 0; s < kLayerStats; ++s) {
      EXPECT_EQ(run.stats[row * kLayerStats + s], all.stats[(row + 2) * kLayerStats + s]);
    }
    for (int b = 0; b < kContextBins; ++b) {
      EXPECT_EQ(run.context[row * kContextBins + b], all.context[(row + 2) * kContextBins + b]);
    }
  }
}

TEST(Scope, GroupsLeaveMeanStatisticsAndTheSumOfTheirContexts) {
  const Shape shape{7, 3, 20};
  Scoped given(shape, {1, 3});
  const LayerRun run = given.run();
  std::vector<double> stats(2 * kLayerStats, 0);
  std::vector<int64_t> context(2 * kContextBins, 0);
  for (int64_t first = 0; first < 7; first += 3) {
    const int64_t images = std::min<int64_t>(3, 7 - first);
    const LayerRun alone = given.alone(first, images);
    for (size_t i = 0; i < stats.size(); ++i) {
      stats[i] += static_cast<double>(images) / 7 * alone.stats[kLayerStats + i];
    }
    for (size_t i = 0; i < context.size(); ++i) context[i] += alone.context[kContextBins + i];
  }
  for (size_t i = 0; i < stats.size(); ++i) {
    EXPECT_DOUBLE_EQ(run.stats[i], stats[i]) << i;
  }
  EXPECT_TRUE(std::equal(context.begin(), context.end(), run.context.begin()));
}

TEST(Scope, ChangesNoBitWithThreadsOrSimd) {
  for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
    for (const Shape& shape : {Shape{9, 6, 49}, Shape{1, 6, 4000}}) {
      Scoped given(shape, {3, 2}, DType::f32, layout);
      const LayerRun plain = given.run(Execution{});
      for (const Simd simd : simd_levels()) {
        for (const int count : {1, 2, 7}) {
          SCOPED_TRACE(std::string(cpu::name(simd)) + ", " + std::to_string(count) + " threads");
          EXPECT_TRUE(plain == given.run(threads(count, simd)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
