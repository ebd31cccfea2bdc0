// Long channels of the fused layer, which threads share and bins count twice, against the oracle.
// Its density takes too long at every value, and is asked for at a few (see sparse_gradient()).
#include <gtest/gtest.h>

#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

// So small that the outer norm takes what lies along its output out of a gradient entirely.
constexpr double kEps = 1e-12;

void check_last_channel(const Shape& shape, Distribution distribution, Layout layout, DType dtype,
                        int64_t asked) {
  SCOPED_TRACE(std::string(name(distribution)) + " of " + std::to_string(shape.context_size()) +
               " " + name(layout) + " " + name(dtype));
  const int64_t n = shape.context_size(), c = shape.channels - 1;
  Tensor x = filled(shape, distribution, 141, dtype, layout);
  Tensor grad_y = filled(shape, Distribution::normal, 142, dtype, layout);
  const Affines affines(shape.channels);
  const std::vector<int> level =
      LayerRun(x, grad_y, affines, {}, threads(2), layout, kEps).levels_of(c);
  std::vector<int64_t> places;
  for (int64_t j = 0; j < asked; ++j) places.push_back(j * (n - 1) / (asked - 1));  // both ends too
  grad_y.set(c, sparse_gradient(level, places, 143));
  const LayerRun run(x, grad_y, affines, {}, threads(2), layout, kEps);
  ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
  LayerCase given{x.get(c), grad_y.get(c), affines.of(c), dtype, /*exact=*/false};
  given.parameters.eps = kEps;
  expect_levels(given, run.found(c));
  expect_norms(given, run.found(c));
  // Rounded to bfloat16, the gradient has parts along 1 and the output at all places.
  if (dtype == DType::f32) expect_sparse_gradient(given, run.found(c), places);
}

constexpr Layout kBothWays[] = {Layout::contiguous, Layout::channels_last};

TEST(LongLayer, EqualsTheOracleAt40000Values) {
  for (const Distribution distribution : {Distribution::normal, Distribution::heavy_tailed,
                                          Distribution::bimodal, Distribution::ties}) {
    for (const Layout layout : kBothWays) {
      check_last_channel({40, 3, 1000}, distribution, layout, DType::f32, 200);
    }
  }
  for (const Layout layout : kBothWays) {
    check_last_channel({400, 17, 100}, Distribution::positive, layout, DType::bf16, 200);
    check_last_channel({400, 17, 100}, Distribution::negative, layout, DType::f32, 200);
  }
}

TEST(LongLayer, EqualsTheOracleAt300000Values) {
  for (const Layout layout : kBothWays) {
    check_last_channel({3, 2, 100000}, Distribution::normal, layout, DType::f32, 40);
  }
  check_last_channel({3000, 2, 100}, Distribution::far_mean, Layout::contiguous, DType::f32, 40);
  check_last_channel({300000, 2, 1}, Distribution::heavy_tailed, Layout::channels_last, DType::f32,
                     40);
}

}  // namespace
}  // namespace qact::core::testing
