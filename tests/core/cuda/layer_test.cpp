// The fused layer's CUDA kernels, emulated, against the oracle: every distribution, type and
// layout.
#include <gtest/gtest.h>

#include <cmath>

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

// Beyond the density's grid a value has what its own kernel gives it.
TEST(CudaCodes, HaveTheDensityOfAValueFarBeyondAllOthers) {
  const int64_t n = 1500;
  Tensor x = filled({1, 1, n}, Distribution::normal, 311);
  Tensor grad_y = filled({1, 1, n}, Distribution::normal, 312);
  std::vector<double> values = x.get(0);
  values[7] = -1e6;
  x.set(0, values);
  double mean = 0, square = 0, negatives = 0;
  for (const double v : values) mean += v / n, square += v * v / n, negatives += v < 0;
  Affines affines(1);
  affines.weight_in[0] = 1;
  affines.bias_in[0] = static_cast<float>(mean / std::sqrt(square - mean * mean));  // z(0) = 0
  const CudaLayerRun run(x, grad_y, affines, {});
  CodeTable table;
  std::memcpy(&table, run.table.data(), sizeof(table));
  const double expected = 0.5 / (negatives + 1) * 0.3989422804 / Quantile().bandwidth;
  EXPECT_NEAR(table.density[run.code[7]], expected, 0.05 * expected);
}

}  // namespace
}  // namespace qact::core::testing
