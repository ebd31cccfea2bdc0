// Contexts and running statistics on the emulated device, against the CPU's: the same integers.
#include "qact/core/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/cases.h"
#include "tests/core/cuda/device_memory.h"

namespace qact::core::testing {
namespace {

std::vector<int64_t> build(Tensor& x, const std::vector<double>& scale,
                           const std::vector<double>& shift, bool on_device) {
  const int64_t channels = x.shape().channels;
  std::vector<int64_t> out(channels * kContextBins, -1);
  const ContextBuild call{
      x.shape(), x.view(), {scale.data(), true}, {shift.data(), true}, out.data()};
  if (!on_device) {
    context_build(call, threads(1));
    return out;
  }
  run_with_scratch(0, [&](const cuda::Stream& stream) { cuda::context_build(call, stream); });
  return out;
}

TEST(CudaContext, IsBuiltAsOnTheCpu) {
  for (const Layout layout : {Layout::contiguous, Layout::channels_last, Layout::sliced}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const Shape& shape : {Shape{3, 2, 7}, {70, 5, 81}}) {
        for (const Distribution distribution :
             {Distribution::heavy_tailed, Distribution::ties, Distribution::constant}) {
          Tensor x = filled(shape, distribution, 401, dtype, layout);
          std::vector<double> values = x.get(1);
          values[2] = std::nan("");
          x.set(1, values);
          std::vector<double> scale(shape.channels, -1.5), shift(shape.channels, 0.25);
          EXPECT_EQ(build(x, scale, shift, true), build(x, scale, shift, false));
        }
      }
    }
  }
}

// As many as a tie has at least, and one less, of either sign; next to their neighbours, and to
// infinities that tie.
TEST(CudaContext, KnowsTheSameTiesAsTheCpu) {
  const int64_t n = 6400, channels = 6;
  Tensor x({n, channels, 1});
  for (int64_t c = 0; c < channels; ++c) {
    std::vector<double> values = draw(Distribution::normal, n, 420 + c);
    for (int64_t i = 0; i < n; ++i) values[i] = std::abs(values[i]) * (i < n / 2 ? -1 : 1);
    const auto tie = [&](int64_t from, int64_t count, double value) {
      std::fill_n(values.begin() + from, count, value);
    };
    tie(0, 50 - c % 2, -0.3);
    tie(n / 2, 49 + c % 2, 1.7);
    tie(n / 2 + 100, 49, std::nextafter(1.7f, 2.0f));
    if (c == 2) tie(100, 60, -std::numeric_limits<double>::infinity());
    if (c == 3) tie(n - 900, 900, 0.0);
    if (c == 4) tie(n / 2, n / 2, 0.0), tie(5, n / 2 - 10, -0.0);
    if (c == 5) tie(0, n, 3.0);
    x.set(c, values);
  }
  const std::vector<double> one(channels, 1), none(channels, 0);
  EXPECT_EQ(build(x, one, none, true), build(x, one, none, false));
}

TEST(CudaContext, IsBlendedAndReadAsOnTheCpu) {
  const int64_t channels = 37;
  Tensor x = filled({300, channels, 1}, Distribution::normal, 402);
  Tensor z = filled({90, channels, 1}, Distribution::uniform, 403);
  const std::vector<double> one(channels, 1), none(channels, 0);
  const std::vector<int64_t> a = build(x, one, none, false), b = build(z, one, none, false);
  std::vector<int64_t> blended(a.size()), expected(a.size());
  context_blend({channels, a.data(), 900, b.data(), 124, expected.data()}, threads(1));
  run_with_scratch(0, [&](const cuda::Stream& stream) {
    cuda::context_blend({channels, a.data(), 900, b.data(), 124, blended.data()}, stream);
  });
  EXPECT_EQ(blended, expected);
  Quantile quantile;
  quantile.levels = 60;
  DeviceArray<double> quantiles;
  quantiles.resize(channels * quantile.levels);
  run_with_scratch(0, [&](const cuda::Stream& stream) {
    cuda::context_quantiles(blended.data(), channels, quantile, quantiles.data(), stream);
  });
  for (int64_t c = 0; c < channels; ++c) {
    std::vector<double> own(quantile.levels);
    context_quantiles(ConstContextRow(expected.data() + c * kContextBins, kContextBins), quantile,
                      own.data());
    for (int j = 0; j < quantile.levels; ++j) {
      ASSERT_NEAR(quantiles[c * quantile.levels + j], own[j], 1e-9);
    }
  }
}

// Everything that a layer remembers; some contexts are empty.
struct Running {
  std::vector<float> mean_in, var_in, mean_out, var_out;
  std::vector<int64_t> context;
  int64_t batches = 3;

  explicit Running(const std::vector<int64_t>& contexts, int64_t channels)
      : mean_in(channels, 0.5f),
        var_in(channels, 1.5f),
        mean_out(channels, 0.25f),
        var_out(channels, 2.0f),
        context(contexts) {}

  LayerTrack call(const std::vector<double>& stats, const std::vector<int64_t>& batch) {
    LayerTrack out;
    out.channels = static_cast<int64_t>(mean_in.size());
    out.stats = stats.data();
    out.batch = batch.data();
    out.mean_in = {mean_in.data()};
    out.var_in = {var_in.data()};
    out.mean_out = {mean_out.data()};
    out.var_out = {var_out.data()};
    out.context = context.data();
    out.batches = &batches;
    out.n = 5;
    out.values = 1024;
    return out;
  }
};

TEST(CudaContext, IsTrackedAsOnTheCpu) {
  const int64_t channels = 6;
  Tensor x = filled({300, channels, 1}, Distribution::normal, 404);
  Tensor z = filled({90, channels, 1}, Distribution::bimodal, 405);
  const std::vector<double> one(channels, 1), none(channels, 0);
  std::vector<int64_t> kept = build(x, one, none, false), batch = build(z, one, none, false);
  std::fill_n(kept.begin() + 2 * kContextBins, kContextBins, 0);
  std::fill_n(batch.begin() + 4 * kContextBins, kContextBins, 0);
  const std::vector<double> stats = draw(Distribution::positive, channels * kLayerStats, 406);
  Running cpu(kept, channels), cuda(kept, channels);
  layer_track(cpu.call(stats, batch), threads(1));
  run_with_scratch(0, [&](const core::cuda::Stream& stream) {
    core::cuda::layer_track(cuda.call(stats, batch), stream);
  });
  EXPECT_EQ(cuda.context, cpu.context);
  EXPECT_EQ(cuda.batches, 4);
  for (int64_t c = 0; c < channels; ++c) {
    EXPECT_NEAR(cuda.mean_in[c], cpu.mean_in[c], 1e-6);
    EXPECT_NEAR(cuda.var_in[c], cpu.var_in[c], 1e-6);
    EXPECT_NEAR(cuda.mean_out[c], cpu.mean_out[c], 1e-6);
    EXPECT_NEAR(cuda.var_out[c], cpu.var_out[c], 1e-6);
  }
}

}  // namespace
}  // namespace qact::core::testing
