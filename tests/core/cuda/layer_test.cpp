// The fused layer's CUDA kernels, emulated, against the oracle: every distribution, type and
// layout.
#include <gtest/gtest.h>

#include "tests/core/activation_run.h"
#include "tests/core/cuda/layer_run.h"

namespace qact::core::testing {
namespace {

using Case = std::tuple<Layout, DType, Algorithm>;
class CudaLayer : public ::testing::TestWithParam<Case> {};

TEST_P(CudaLayer, EqualsTheComposition) {
  const auto [layout, dtype, algorithm] = GetParam();
  const Shape shapes[] = {{2, 3, 1}, {129, 6, 1}, {2, 3, 45}, {5, 17, 16}, {3, 4, 401}};
  for (const Shape& shape : shapes) {
    for (const Distribution distribution : kDistributions) {
      SCOPED_TRACE(std::string(name(distribution)) + " of " + std::to_string(shape.context_size()));
      // A constant's gradient is beyond what half can hold.
      if (dtype == DType::f16 && distribution == Distribution::constant) continue;
      Tensor x = filled(shape, distribution, 81, dtype, layout);
      Tensor grad_y = filled(shape, Distribution::normal, 82, dtype, layout);
      for (int64_t c = 0; c < shape.channels; ++c) {
        grad_y.set(c, with_trend(grad_y.get(c), x.get(c)));
      }
      const Affines affines(shape.channels);
      const CudaLayerRun run(x, grad_y, affines, with(algorithm));
      ASSERT_TRUE(run.intact(x));
      for (int64_t c = 0; c < shape.channels; ++c) {
        SCOPED_TRACE("channel " + std::to_string(c));
        const LayerCase given{x.get(c),
                              grad_y.get(c),
                              affines.of(c),
                              dtype,
                              with(algorithm).exact_for(shape.context_size()),
                              DType::f32,
                              tolerance::Kept::levels};
        expect_levels(given, run.found(c));
        expect_norms(given, run.found(c));
        expect_gradient(given, run.found(c));
        if (HasFailure()) return;
      }
    }
  }
}

constexpr Case kCases[] = {
    {Layout::contiguous, DType::f32, Algorithm::automatic},
    {Layout::contiguous, DType::f32, Algorithm::exact},
    {Layout::contiguous, DType::f32, Algorithm::binned},
    {Layout::contiguous, DType::bf16, Algorithm::automatic},
    {Layout::contiguous, DType::f16, Algorithm::automatic},
    {Layout::channels_last, DType::f32, Algorithm::automatic},
    {Layout::channels_last, DType::f32, Algorithm::exact},
    {Layout::channels_last, DType::f32, Algorithm::binned},
    {Layout::channels_last, DType::bf16, Algorithm::automatic},
    {Layout::channels_last, DType::f16, Algorithm::automatic},
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  constexpr const char* kAlgorithms[] = {"auto", "exact", "binned"};
  const auto [layout, dtype, algorithm] = info.param;
  return std::string(name(layout)) + "_" + name(dtype) + "_" +
         kAlgorithms[static_cast<int>(algorithm)];
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaLayer, ::testing::ValuesIn(kCases), case_name);

}  // namespace
}  // namespace qact::core::testing
