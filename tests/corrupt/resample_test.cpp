#include "qact/corrupt/resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/corrupt/test_images.h"

namespace qact::corrupt {
namespace {

// Crop, its start and the stretched side for factors 1.00, 1.01, ..., as published.
struct Zoom {
  int crop, first, stretched;
};
constexpr Zoom kOf32[] = {
    {32, 0, 32}, {32, 0, 32}, {32, 0, 33}, {32, 0, 33}, {31, 0, 32}, {31, 0, 33}, {31, 0, 33},
    {30, 1, 32}, {30, 1, 32}, {30, 1, 33}, {30, 1, 33}, {29, 1, 32}, {29, 1, 32}, {29, 1, 33},
    {29, 1, 33}, {28, 2, 32}, {28, 2, 32}, {28, 2, 33}, {28, 2, 33}, {27, 2, 32}, {27, 2, 32},
    {27, 2, 33}, {27, 2, 33}, {27, 2, 33}, {26, 3, 32}, {26, 3, 33}};
constexpr Zoom kOf64[] = {
    {64, 0, 64}, {64, 0, 65}, {63, 0, 64}, {63, 0, 65}, {62, 1, 64}, {61, 1, 64}, {61, 1, 65},
    {60, 2, 64}, {60, 2, 65}, {59, 2, 64}, {59, 2, 65}, {58, 3, 64}, {58, 3, 65}, {57, 3, 64},
    {57, 3, 65}, {56, 4, 64}, {56, 4, 65}, {55, 4, 64}, {55, 4, 65}, {54, 5, 64}, {54, 5, 65},
    {53, 5, 64}, {53, 5, 65}, {53, 5, 65}, {52, 6, 64}, {52, 6, 65}};

void expect_axis(const Axis& axis, const Zoom& zoom, int n, int trim) {
  ASSERT_EQ(static_cast<int>(axis.index.size()), n);
  for (int i = 0; i < n; ++i) {
    const double place = zoom.first + (i + trim) * double(zoom.crop - 1) / (zoom.stretched - 1);
    EXPECT_NEAR(axis.index[i] + axis.weight[i], place, 1e-5) << i;
    EXPECT_GE(axis.weight[i], 0);
    EXPECT_LE(axis.weight[i], 1);
  }
}

TEST(Resample, ZoomsByThePublishedTable) {
  const double step = (1 + .01) - 1;
  for (int i = 0; i < 26; ++i) {
    expect_axis(zoom_axis(32, 1 + i * step), kOf32[i], 32, 0);
    expect_axis(zoom_axis(64, 1 + i * step), kOf64[i], 64, 0);
  }
  expect_axis(zoom_axis(32, 1.75), {19, 6, 33}, 32, 0);
  expect_axis(zoom_axis(32, 2.25), {15, 8, 34}, 32, 1);
  expect_axis(zoom_axis(64, 2.25), {29, 17, 65}, 64, 0);
}

TEST(Resample, AddsAsAPlainLoop) {
  for (const int channels : {1, 3}) {
    const image::Image image = test::test_image(2, 28, channels);
    const std::vector<float> in(image.pixels.begin(), image.pixels.end());
    const Axis axis = zoom_axis(28, 1.3);
    std::vector<float> sum(in.size(), 5);
    add_resampled(in.data(), image.size, axis, axis, 2.0f, sum.data());
    const auto at = [&](int y, int x, int c) {
      return double(in[(std::min(y, 27) * 28 + std::min(x, 27)) * channels + c]);
    };
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        for (int c = 0; c < channels; ++c) {
          const int v = axis.index[y], u = axis.index[x];
          const double b = axis.weight[y], a = axis.weight[x];
          const double expected = (1 - b) * ((1 - a) * at(v, u, c) + a * at(v, u + 1, c)) +
                                  b * ((1 - a) * at(v + 1, u, c) + a * at(v + 1, u + 1, c));
          EXPECT_NEAR(sum[(y * 28 + x) * channels + c], 5 + 2 * expected, 1e-3);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qact::corrupt
