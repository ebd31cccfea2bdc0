// Running statistics and contexts against plain double sums, in every type.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/quantile.h"
#include "tests/core/narrow.h"

namespace qact::core::testing {
namespace {

constexpr int64_t kChannels = 5;

template <class T>
double value(const T& v) {
  if constexpr (sizeof(T) == 2) {
    return widen(v);
  } else {
    return v;
  }
}
template <class T>
T number(double v) {
  if constexpr (sizeof(T) == 2) {
    return narrow<T>(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

Context counted(int64_t step) {
  Context out(kChannels);
  for (int64_t c = 0; c < kChannels; ++c) {
    for (int i = 0; i < 40; ++i) out.row(c)[(i * step + 7 * c) % kContextBins] += kContextUnit;
  }
  return out;
}

// `unit`: half of the distance between two numbers around 1.
template <class T>
void expect_tracked(DType dtype, double unit) {
  std::vector<LayerStats> stats(kChannels);
  for (int64_t c = 0; c < kChannels; ++c) {
    const double d = static_cast<double>(c);
    stats[c] = {0.3 - d, 1.5 + d, 0.4 + 0.05 * d, 0.08 + 0.01 * d, 9, 9, 9, 9};
  }
  std::vector<std::vector<T>> running;
  for (int i = 0; i < 4; ++i) {
    std::vector<T>& vector = running.emplace_back();
    for (int64_t c = 0; c < kChannels; ++c) {
      vector.push_back(number<T>(0.5 + 0.25 * i - 0.125 * static_cast<double>(c)));
    }
  }
  const auto before = running;
  const Context batch = counted(3), start = counted(11);
  Context context = start;
  int64_t batches = 7;
  LayerTrack call;
  call.channels = kChannels;
  call.stats = reinterpret_cast<const double*>(stats.data());
  call.batch = batch.data();
  call.mean_in = {running[0].data(), dtype};
  call.var_in = {running[1].data(), dtype};
  call.mean_out = {running[2].data(), dtype};
  call.var_out = {running[3].data(), dtype};
  call.context = context.data();
  call.batches = &batches;
  call.n = 40;
  call.momentum = 0.3;
  call.values = 1024;
  layer_track(call, {});

  EXPECT_EQ(batches, 8);
  EXPECT_EQ(context, Context::blend(start, 0.7 * 1024, batch, 0.3 * 1024));
  const double unbiased = 40.0 / 39;
  for (int64_t c = 0; c < kChannels; ++c) {
    const double target[] = {stats[c].mean_in, unbiased * stats[c].var_in, stats[c].mean_out,
                             unbiased * stats[c].var_out};
    for (int i = 0; i < 4; ++i) {
      const double expected = 0.7 * value(before[i][c]) + 0.3 * target[i];
      EXPECT_NEAR(value(running[i][c]), expected, unit * std::max(1.0, std::abs(expected)))
          << "statistic " << i << " of channel " << c;
    }
  }
}

TEST(LayerTrack, EqualsPlainSumsInEveryType) {
  expect_tracked<float>(DType::f32, 0x1p-23);
  expect_tracked<double>(DType::f64, 1e-15);
  expect_tracked<bfloat16_bits>(DType::bf16, 0x1p-8);
  expect_tracked<half_bits>(DType::f16, 0x1p-11);
}

}  // namespace
}  // namespace qact::core::testing
