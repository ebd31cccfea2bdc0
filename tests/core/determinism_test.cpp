// The same bits for 1, 2 and 7 threads and for every SIMD level, forward and backward.
#include <gtest/gtest.h>

#include "qact/core/cpu/dispatch.h"
#include "tests/core/activation_run.h"
#include "tests/core/apply_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

// compare(execution) is told every way of running but the first, plain one.
template <class Compare>
void for_each_execution(const Compare& compare) {
  for (const Simd simd : simd_levels()) {
    for (const int count : {1, 2, 7}) {
      SCOPED_TRACE(std::string(cpu::name(simd)) + ", " + std::to_string(count) + " threads");
      compare(threads(count, simd));
    }
  }
}

const Shape kFew[] = {{3, 9, 1}, {70, 33, 1}, {19, 18, 16}, {2, 7, 300}, {2, 3, 17000}};
const Distribution kSome[] = {Distribution::normal, Distribution::ties, Distribution::heavy_tailed,
                              Distribution::far_mean};

TEST(SameBits, Activation) {
  for (const Shape& shape : kFew) {
    for (const Distribution distribution : kSome) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        Tensor x = filled(shape, distribution, 111, dtype);
        const ActivationRun plain(x, {}, Execution{});
        for_each_execution([&](const Execution& execution) {
          EXPECT_TRUE(plain == ActivationRun(x, {}, execution)) << name(distribution);
        });
      }
    }
  }
}

TEST(SameBits, Layer) {
  for (const Shape& shape : kFew) {
    for (const Distribution distribution : kSome) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        Tensor x = filled(shape, distribution, 113, dtype);
        Tensor grad_y = filled(shape, Distribution::normal, 114, dtype);
        const Affines affines(shape.channels);
        const LayerRun plain(x, grad_y, affines, {}, Execution{});
        for_each_execution([&](const Execution& execution) {
          EXPECT_TRUE(plain == LayerRun(x, grad_y, affines, {}, execution)) << name(distribution);
        });
      }
    }
  }
}

TEST(SameBits, LayerOfEveryLayout) {
  for (const Layout layout : kLayouts) {
    const Shape shape{19, 18, 25};
    Tensor x = filled(shape, Distribution::normal, 115, DType::f32, layout);
    Tensor grad_y = filled(shape, Distribution::normal, 116, DType::f32, layout);
    const Affines affines(shape.channels);
    const LayerRun plain(x, grad_y, affines, {}, Execution{}, layout);
    for_each_execution([&](const Execution& execution) {
      EXPECT_TRUE(plain == LayerRun(x, grad_y, affines, {}, execution, layout)) << name(layout);
    });
  }
}

// Threads share the blocks of a long channel that has no others beside it.
TEST(SameBits, LayerOfALoneGroup) {
  for (const Shape& shape : {Shape{3, 1, 90000}, Shape{2700, 2, 100}}) {
    for (const Distribution distribution : {Distribution::normal, Distribution::ties}) {
      Tensor x = filled(shape, distribution, 119);
      Tensor grad_y = filled(shape, Distribution::normal, 120);
      const Affines affines(shape.channels);
      const LayerRun plain(x, grad_y, affines, {}, Execution{});
      for_each_execution([&](const Execution& execution) {
        EXPECT_TRUE(plain == LayerRun(x, grad_y, affines, {}, execution)) << name(distribution);
      });
    }
  }
}

TEST(LoneGroup, EqualsTheSameChannelAmongMany) {
  constexpr int64_t kMany = 40;  // two groups at least
  for (const int64_t spatial : {100, 45000}) {
    const Shape one{270000 / spatial, 1, spatial}, many{one.batch, kMany, spatial};
    Tensor x = filled(one, Distribution::normal, 121), all_x(many);
    Tensor grad_y = filled(one, Distribution::normal, 122), all_grad_y(many);
    all_x.set(0, x.get(0));
    all_grad_y.set(0, grad_y.get(0));
    const Affines affines(kMany);
    const LayerRun alone(x, grad_y, affines, {}, threads(2));
    const LayerRun among(all_x, all_grad_y, affines, {}, threads(2));
    EXPECT_EQ(alone.levels_of(0), among.levels_of(0));
    EXPECT_LT(relative_error(alone.y.get(0), among.y.get(0)), 1e-6);
    EXPECT_LT(relative_error(alone.grad_x.get(0), among.grad_x.get(0)), 1e-6);
  }
}

TEST(SameBits, ApplyAndContext) {
  for (const Shape& shape : kFew) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Tensor x = filled(shape, Distribution::normal, 117, dtype);
      Tensor grad_y = filled(shape, Distribution::normal, 118, dtype);
      const ApplyRun plain(x, grad_y, 100, Execution{});
      for_each_execution([&](const Execution& execution) {
        EXPECT_TRUE(plain == ApplyRun(x, grad_y, 100, execution));
      });
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
