#include "qact/corrupt/gaussian.h"

#include <gtest/gtest.h>

namespace qact::corrupt {
namespace {

TEST(Gaussian, KeepsTheMeanAndSpreadsAPoint) {
  const image::Size size{41, 41, 1};
  std::vector<float> point(size.values());
  point[20 * 41 + 20] = 1;
  GaussianBlur(1.5)(point, size);
  double sum = 0, variance = 0;
  for (int i = 0; i < 41 * 41; ++i) {
    sum += point[i];
    variance += point[i] * (i % 41 - 20) * (i % 41 - 20);
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_NEAR(variance, 2.25, 0.01);
}

// float32 sums of weights miss 1 by enough to darken a flat area by a level when truncated.
TEST(Gaussian, LeavesWhiteWhite) {
  const image::Size size{32, 32, 3};
  for (const double sigma : {.25, .6, .7, .8, 1.25}) {
    std::vector<double> white(size.values(), 1.0);
    GaussianBlur blur(sigma);
    blur(white, size);
    for (const double value : white) ASSERT_GE(value, 1) << sigma;
  }
}

}  // namespace
}  // namespace qact::corrupt
