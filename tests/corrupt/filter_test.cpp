#include "qact/corrupt/filter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qact/base/random.h"

namespace qact::corrupt {
namespace {

std::vector<float> values(int64_t n) {
  base::Random random(3, 1);
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>(255 * random.uniform());
  return out;
}

// The borders spelt out: walk outwards one step at a time.
int plain_index(Border border, int i, int n) {
  if (border == Border::clamp) return i < 0 ? 0 : i >= n ? n - 1 : i;
  while (i < 0 || i >= n) {
    const int edge = border == Border::reflect101 ? 0 : 1;
    i = i < 0 ? -i - edge : 2 * (n - 1) - i + edge;
  }
  return i;
}

TEST(Filter, BordersRepeatAsTheyShould) {
  for (const Border border : {Border::clamp, Border::reflect, Border::reflect101}) {
    for (const int n : {2, 3, 7}) {
      for (int i = -20; i < 30; ++i) {
        EXPECT_EQ(border_index(border, i, n), plain_index(border, i, n)) << i << " of " << n;
      }
    }
  }
  EXPECT_EQ(border_index(Border::zero, -1, 4), -1);
  EXPECT_EQ(border_index(Border::zero, 4, 4), -1);
  EXPECT_EQ(border_index(Border::reflect101, 5, 1), 0);
}

// Bit for bit, in the order of the taps: no vector width may change a value.
TEST(Filter, CorrelatesAsAPlainLoop) {
  const std::vector<Tap> taps = {{0, 0, .5f},   {-2, 1, .25f}, {1, -3, .125f},
                                 {40, 5, -.3f}, {0, 9, .7f},   {-9, -9, .01f}};
  for (const image::Size size :
       {image::Size{32, 32, 3}, {28, 28, 1}, {5, 11, 3}, {16, 17, 1}, {64, 64, 3}}) {
    const std::vector<float> in = values(size.values());
    for (const Border border : {Border::clamp, Border::reflect, Border::reflect101}) {
      std::vector<float> out(in.size());
      correlate(in.data(), size, border, taps, out.data());
      for (int y = 0, i = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          for (int c = 0; c < size.channels; ++c, ++i) {
            float sum = 0;
            for (const Tap& tap : taps) {
              const int v = plain_index(border, y + tap.dy, size.height);
              const int u = plain_index(border, x + tap.dx, size.width);
              const float product =
                  static_cast<float>(tap.weight) * in[(v * size.width + u) * size.channels + c];
              sum += product;
            }
            ASSERT_EQ(out[i], sum) << "at " << y << ", " << x << ", width " << size.width;
          }
        }
      }
    }
  }
}

// Halves of integers, so that sums are exact in any order.
TEST(Filter, MirroredTapsStandForBothHalves) {
  const std::vector<Tap> lower = {{0, 0, 1}, {0, 2, .5f}, {1, -1, 2}, {3, 1, .5f}, {12, 0, 1}};
  std::vector<Tap> all = lower;
  for (const Tap& tap : lower) {
    if (tap.dy > 0) all.push_back({-tap.dy, tap.dx, tap.weight});
  }
  for (const image::Size size : {image::Size{32, 32, 3}, {5, 11, 3}, {16, 17, 1}}) {
    std::vector<float> in = values(size.values()), expected(in.size()), found(in.size());
    for (float& v : in) v = std::floor(v);
    correlate(in.data(), size, Border::reflect101, all, expected.data());
    correlate_mirrored(in.data(), size, Border::reflect101, lower, found.data());
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace qact::corrupt
