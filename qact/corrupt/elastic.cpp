#include <array>
#include <cmath>

#include "qact/corrupt/bilinear.h"
#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/gaussian.h"

namespace qact::corrupt {
namespace {

// (x, y) -> (m0 x + m1 y + m2, m3 x + m4 y + m5)
using AffineMatrix = std::array<double, 6>;

// Moves three corners of a square in the middle by up to `reach` in x and in y. The corners are
// float32: a large reach may put them nearly on a line.
AffineMatrix random_affine(image::Size size, double reach, Rng& rng) {
  const double cx = size.width / 2, cy = size.height / 2;
  const double q = std::min(size.height, size.width) / 3;
  const double from[3][2] = {{cx + q, cy + q}, {cx + q, cy - q}, {cx - q, cy - q}};
  const auto moved = [](double x, double by) {
    return static_cast<float>(x) + static_cast<float>(by);
  };
  double to[3][2];
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 2; ++k) to[i][k] = moved(from[i][k], rng.uniform(-reach, reach));
  }
  AffineMatrix m;
  for (int k = 0; k < 2; ++k) {
    const double a = (to[1][k] - to[2][k]) / (2 * q), b = (to[0][k] - to[1][k]) / (2 * q);
    m[3 * k] = a;
    m[3 * k + 1] = b;
    m[3 * k + 2] = to[0][k] - a * from[0][0] - b * from[0][1];
  }
  return m;
}

AffineMatrix inverse(const AffineMatrix& m) {
  const double d = m[0] * m[4] - m[1] * m[3];
  const double a = m[4] / d, b = -m[1] / d, c = -m[3] / d, e = m[0] / d;
  return {a, b, -a * m[2] - b * m[5], c, e, -c * m[2] - e * m[5]};
}

// out(p) = in(m p), with m's terms in 1/1024 and places in 1/32 of a pixel, as OpenCV has them.
void warp(const std::vector<float>& in, image::Size size, Border border, const AffineMatrix& m,
          std::vector<float>& out) {
  const auto fixed = [](double v) { return static_cast<int>(std::nearbyint(v * 1024)); };
  std::vector<int> across_x(size.width), across_y(size.width);
  for (int x = 0; x < size.width; ++x) {
    across_x[x] = fixed(m[0] * x);
    across_y[x] = fixed(m[3] * x);
  }
  float* pixel = out.data();
  for (int y = 0; y < size.height; ++y) {
    const int start_x = fixed(m[1] * y + m[2]) + 16, start_y = fixed(m[4] * y + m[5]) + 16;
    for (int x = 0; x < size.width; ++x, pixel += size.channels) {
      const float sx = static_cast<float>((start_x + across_x[x]) >> 5) / 32;  // exact
      const float sy = static_cast<float>((start_y + across_y[x]) >> 5) / 32;
      sample_bilinear(in.data(), size, border, sy, sx, pixel);
    }
  }
}

// The original draws and blurs in double and keeps the result in float32.
std::vector<float> displacement(image::Size size, double strength, const GaussianBlur& blur,
                                Rng& rng) {
  std::vector<double> field(int64_t{size.height} * size.width);
  for (double& value : field) value = rng.uniform(-1, 1);
  blur(field, {size.height, size.width, 1});
  for (double& value : field) value *= strength;
  return {field.begin(), field.end()};
}

}  // namespace

Effect elastic_transform(const EffectParams& params) {
  const ElasticConstants sides = kElastic.at(params);
  const double side = params.scale == Scale::imagenet && !params.mnist
                          ? 244
                          : std::min(params.size.height, params.size.width);
  const GaussianBlur blur(side * sides.sigma, 3, Border::reflect);
  return [=](const uint8_t* in, Rng& rng, uint8_t* out) {
    const image::Size size = params.size;
    // Images in float32 on [0, 1], places in double: so white stays white.
    const std::vector<float> values = from_bytes<float>(in, size.values());
    std::vector<float> warped(values.size());
    const AffineMatrix affine = random_affine(size, side * sides.affine, rng);
    warp(values, size, params.mnist ? Border::zero : Border::reflect101, inverse(affine), warped);
    if (sides.strength == 0) {
      to_bytes(warped, params.rounding(), out);
      return;
    }
    const auto dx = displacement(size, side * sides.strength, blur, rng);
    const auto dy = displacement(size, side * sides.strength, blur, rng);
    std::vector<float> moved(values.size());
    for (int y = 0, i = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x, ++i) {
        const double sy = y + double{dy[i]}, sx = x + double{dx[i]};
        const bool outside = sy < 0 || sx < 0 || sy > size.height - 1 || sx > size.width - 1;
        if (outside && params.mnist) continue;  // stays black
        sample_bilinear(warped.data(), size, Border::reflect, sy, sx,
                        moved.data() + int64_t{i} * size.channels);
      }
    }
    to_bytes(moved, params.rounding(), out);
  };
}

}  // namespace qact::corrupt
