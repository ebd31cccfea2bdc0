// Values ranked by given quantiles on the emulated device, against the CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/apply_run.h"
#include "tests/core/cuda/device_memory.h"

namespace qact::core::testing {
namespace {

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double relative) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE((std::isnan(found[i]) && std::isnan(expected[i])) ||
                std::abs(found[i] - expected[i]) <= relative * (1 + std::abs(expected[i])))
        << found[i] << " and " << expected[i];
  }
}

void expect_like_the_cpu(Tensor& x, int levels, Layout layout) {
  const DType dtype = x.view().dtype;
  const int64_t channels = x.shape().channels;
  Tensor grad_y = filled(x.shape(), Distribution::normal, 502, dtype, layout);
  ApplyRun cpu(x, grad_y, levels, threads(1), layout), device = cpu;
  device.y = device.rank = device.grad_x = Tensor(x.shape(), dtype, layout);
  DeviceArray<float> affine;
  affine.resize(channels * 4);
  const QuantileApplyBackward gradient = device.gradient(x, grad_y);
  run_with_scratch(cuda::quantile_apply_backward_scratch(gradient),
                   [&](const cuda::Stream& stream) {
                     cuda::quantile_apply(device.quantised(x), stream);
                     cuda::quantile_apply(device.unquantised(x), stream);
                     cuda::quantile_apply_backward(gradient, affine.data(), stream);
                   });
  ASSERT_TRUE(device.y.intact() && device.grad_x.intact());
  const double rounding = dtype == DType::f32 ? 1e-6 : 1e-2;
  for (int64_t c = 0; c < channels; ++c) {
    expect_near(device.y.get(c), cpu.y.get(c), rounding);
    expect_near(device.rank.get(c), cpu.rank.get(c), rounding);
    expect_near(device.grad_x.get(c), cpu.grad_x.get(c), rounding);
    for (int k = 0; k < 4; ++k) {
      expect_near({affine[k * channels + c]}, {cpu.grad_affine[4 * c + k]}, 1e-5);
    }
  }
}

TEST(CudaApply, EqualsTheCpu) {
  for (const Shape& shape : {Shape{2, 3, 1}, {9, 5, 45}, {3, 2, 301}}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last, Layout::sliced}) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        SCOPED_TRACE(std::string(name(layout)) + " " + name(dtype));
        Tensor x = filled(shape, Distribution::normal, 501, dtype, layout);
        expect_like_the_cpu(x, 100, layout);
      }
    }
  }
}

TEST(CudaApply, EqualsTheCpuForAnyNumberOfLevels) {
  for (const int levels : {2, 3, 31, 127, 128, 255, 1000}) {
    SCOPED_TRACE(levels);
    Tensor x = filled({7, 3, 17}, Distribution::ties, 503);
    expect_like_the_cpu(x, levels, Layout::contiguous);
  }
}

TEST(CudaApply, RanksExtremesAndPassesNanOn) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor x({6, 2, 1});
  x.set(0, {-infinity, infinity, 0, 1, 1e30, -1e30});
  x.set(1, {-1, infinity, std::nan(""), 1, 2, 3});
  Tensor y({6, 2, 1}), grad_x(y), grad_y = filled({6, 2, 1}, Distribution::normal, 504);
  const std::vector<double> q = {-1, 0, 2, -1, 0, 2};
  QuantileApply call;
  call.levels = 3;
  call.shape = x.shape();
  call.x = x.view();
  call.y = y.view();
  call.quantiles = q.data();
  run_with_scratch(0, [&](const cuda::Stream& stream) { cuda::quantile_apply(call, stream); });
  EXPECT_EQ(y.get(0), (std::vector<double>{0, 1, 2.0f / 3, 2.0f / 3, 1, 0}));
  EXPECT_TRUE(std::isnan(y.get(1)[2]));
  QuantileApplyBackward back;
  back.levels = 3;
  back.shape = x.shape();
  back.grad_y = grad_y.view();
  back.x = x.view();
  back.grad_x = grad_x.view();
  back.quantiles = q.data();
  DeviceArray<float> affine;
  affine.resize(8);
  run_with_scratch(cuda::quantile_apply_backward_scratch(back), [&](const cuda::Stream& stream) {
    cuda::quantile_apply_backward(back, affine.data(), stream);
  });
  EXPECT_EQ(grad_x.get(0)[0], 0);
  EXPECT_EQ(grad_x.get(0)[1], 0);
  EXPECT_TRUE(std::isnan(grad_x.get(1)[2]));
  EXPECT_TRUE(std::isfinite(affine[0]) && std::isnan(affine[1]));
}

}  // namespace
}  // namespace qact::core::testing
