// A batch that is spread over ranks, and what is expected of every device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/core/activation_run.h"
#include "tests/core/world_run.h"

namespace qact::core::testing {

using Split = std::vector<int64_t>;

struct World {
  DType dtype;
  Layout layout;
  Quantile quantile;
  Tensor x, grad_y;
  Affines affines;

  World(const Shape& shape, Distribution distribution, DType type = DType::f32,
        Layout lies = Layout::contiguous, const Quantile& q = {})
      : dtype(type),
        layout(lies),
        quantile(q),
        x(filled(shape, distribution, 171, type, lies)),
        grad_y(filled(shape, Distribution::normal, 172, type, lies)),
        affines(shape.channels) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      grad_y.set(c, with_trend(grad_y.get(c), x.get(c)));
    }
  }

  WorldRun run(const Split& images, const WorldBackend& backend = on_cpu(threads(1))) {
    return WorldRun(x, grad_y, affines, quantile, images, backend, layout);
  }
  LayerRun alone() { return LayerRun(x, grad_y, affines, quantile, threads(1), layout); }
};

// Bytes, since NaN equals itself there.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

inline void expect_same_bits(const WorldRun& a, const WorldRun& b) {
  EXPECT_TRUE(a.y == b.y);
  EXPECT_TRUE(same(a.code, b.code));
  EXPECT_TRUE(same(a.table, b.table));
  EXPECT_TRUE(same(a.stats, b.stats));
  EXPECT_TRUE(same(a.context, b.context));
}

// Sums in another order: in units of the largest gradient.
inline void expect_near(const std::vector<double>& a, const std::vector<double>& b, double unit) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], unit * largest) << i;
}

inline void expect_same_gradients(const World& given, const WorldRun& run,
                                  const WorldRun& expected) {
  for (int64_t c = 0; c < given.x.shape().channels; ++c) {
    expect_near(run.grad_x.get(c), expected.grad_x.get(c),
                1e-10 + 4 * tolerance::computed(given.dtype) + tolerance::stored(given.dtype));
  }
  expect_near(run.grad_affine, expected.grad_affine, 64 * tolerance::computed(given.dtype));
}

inline void expect_splits(World& given, const std::vector<Split>& splits,
                          const WorldBackend& backend = on_cpu(threads(1))) {
  const WorldRun whole = given.run({given.x.shape().batch}, backend);
  for (const Split& split : splits) {
    SCOPED_TRACE(::testing::PrintToString(split));
    const WorldRun run = given.run(split, backend);
    ASSERT_TRUE(run.alike);
    ASSERT_EQ(run.rounds, whole.rounds);
    ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
    expect_same_bits(run, whole);
    expect_same_gradients(given, run, whole);
    if (::testing::Test::HasFailure()) return;
  }
}

// Whose values are of all magnitudes: sums of them have bits far below the largest one's.
inline World of_all_magnitudes(const Shape& shape, DType type, Layout layout) {
  World out(shape, Distribution::normal, type, layout);
  for (int64_t c = 0; c < shape.channels; ++c) {
    std::vector<double> values = out.x.get(c);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::ldexp(values[i], -static_cast<int>(i * 7 % 130));
    out.x.set(c, values);
  }
  return out;
}

inline const std::vector<Split> kSplitsOf6 = {{3, 3},    {1, 5},       {0, 6},
                                              {2, 1, 3}, {1, 0, 3, 2}, {6, 0, 0}};

inline LayerFound found(const WorldRun& run, int64_t c) {
  const int64_t n = run.y.shape().context_size();
  LayerStats own;
  std::memcpy(&own, run.stats.data() + c * kLayerStats, sizeof(own));
  const double* affine = run.grad_affine.data() + 4 * c;
  return {{run.level.begin() + c * n, run.level.begin() + (c + 1) * n},
          run.y.get(c),
          run.grad_x.get(c),
          own.mean_in,
          own.var_in,
          own.mean_out,
          own.var_out,
          affine[0],
          affine[1],
          affine[2],
          affine[3]};
}

}  // namespace qact::core::testing
