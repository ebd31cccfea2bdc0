// The fused layer's CUDA kernels, emulated, against the oracle: every distribution, type and
// layout.
#include <gtest/gtest.h>

#include "tests/core/code_bounds.h"
#include "tests/core/cuda/layer_run.h"
#include "tests/core/layer_cases.h"

namespace qact::core::testing {
namespace {

class CudaLayer : public ::testing::TestWithParam<LayerKind> {};

TEST_P(CudaLayer, EqualsTheComposition) {
  LayerCase device;
  device.affine = DType::f32;
  device.kept = tolerance::Kept::codes;
  expect_composition(
      GetParam(), {{2, 3, 1}, {129, 6, 1}, {2, 3, 45}, {5, 17, 16}, {3, 4, 401}}, device,
      [&](Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile) {
        return CudaLayerRun(x, grad_y, affines, quantile);
      });
}

constexpr LayerKind kCases[] = {
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

INSTANTIATE_TEST_SUITE_P(Emulated, CudaLayer, ::testing::ValuesIn(kCases), kind_name);

TEST(CudaCodes, KeepGradientsOfTheTailsWithinTheirBounds) {
  expect_all_bounds([](Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
                       Layout) { return CudaLayerRun(x, grad_y, affines, quantile); });
}

}  // namespace
}  // namespace qact::core::testing
