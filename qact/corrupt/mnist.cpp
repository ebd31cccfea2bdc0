// The corruptions that only MNIST-C has, of grey images of 28 x 28.
#include <array>
#include <cmath>
#include <vector>

#include "qact/corrupt/bilinear.h"
#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"

namespace qact::corrupt {
namespace {

constexpr int kSide = 28;
constexpr double kCentre = 13.5;

// out(x, y) = in(a x + b y + c, d x + e y + f), zero outside.
struct AffineMap {
  double a, b, c, d, e, f;
};

// The map with this matrix that keeps the centre in place.
AffineMap about_centre(double a, double b, double d, double e) {
  return {a, b, kCentre * (1 - a - b), d, e, kCentre * (1 - d - e)};
}

void warp(const uint8_t* in, const EffectParams& params, const AffineMap& m, uint8_t* out) {
  const std::vector<double> values = from_bytes<double>(in, params.size.values());
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      double value;
      sample_bilinear(values.data(), params.size, Border::zero, m.d * x + m.e * y + m.f,
                      m.a * x + m.b * y + m.c, &value);
      out[y * kSide + x] = to_byte(255 * value, params.rounding());
    }
  }
}

using Layer = std::array<double, kSide * kSide>;

double floor_divide(double a, double b) { return std::floor(a / b); }

// Adds a line from (c0, r0) to (c1, r1) that fades over 2.3 pixels up and down.
void add_line(double c0, double r0, double c1, double r1, Layer& layer) {
  if (c0 == c1) return;
  constexpr double kReach = 2.3;
  const double slope = (r1 - r0) / (c1 - c0);
  const int first = static_cast<int>(std::floor(c0)), end = static_cast<int>(std::ceil(c1));
  for (int column = std::max(first, 0); column < std::min(end, kSide); ++column) {
    for (int row = 0; row < kSide; ++row) {
      const double distance =
          std::min(std::abs(row - (slope * (column - c0) + r0)), kReach - 1e-10);
      const double ink = std::clamp(std::log(1 - distance / kReach) + 1, 0.0, 1.0);
      double& value = layer[row * kSide + column];
      value = std::min(value + ink, 1.0);
    }
  }
}

struct Point {
  double column, row;
};

// The corners of a zigzag along the first axis, over `length`.
std::vector<Point> zigzag_corners(double length) {
  constexpr double kLength = 2, kWidth = 2;
  std::vector<Point> corners = {{0, 0}};
  double row = 0;
  const int teeth = static_cast<int>(floor_divide(length - kLength, 2 * kLength)) + 1;
  for (int i = 0; i < teeth; ++i) {
    row = i % 2 == 0 ? kWidth : -kWidth;
    corners.push_back({(2 * i + 1) * kLength, row});
  }
  const double whole = 2 * kLength * floor_divide(length, 2 * kLength);
  if (length != whole) corners.push_back({length, row / (2 * (length - whole))});
  return corners;
}

void to_layer(const uint8_t* in, Layer& layer) {
  for (int i = 0; i < kSide * kSide; ++i) layer[i] = in[i] / 255.0;
}

void from_layer(const Layer& layer, Rounding rounding, uint8_t* out) {
  for (int i = 0; i < kSide * kSide; ++i) out[i] = to_byte(layer[i] * 255, rounding);
}

}  // namespace

Effect shear(const EffectParams& params) {
  return [params](const uint8_t* in, Rng& rng, uint8_t* out) {
    const double angle = rng.coin() ? kShear[params.severity - 1] : -kShear[params.severity - 1];
    warp(in, params, about_centre(1, -std::sin(angle), 0, std::cos(angle)), out);
  };
}

Effect rotate(const EffectParams& params) {
  return [params](const uint8_t* in, Rng& rng, uint8_t* out) {
    const double angle = rng.coin() ? kRotate[params.severity - 1] : -kRotate[params.severity - 1];
    const double cosine = std::cos(angle), sine = std::sin(angle);
    warp(in, params, about_centre(cosine, -sine, sine, cosine), out);
  };
}

Effect scale(const EffectParams& params) {
  return [params](const uint8_t* in, Rng&, uint8_t* out) {
    const double factor = kShrink[params.severity - 1];
    warp(in, params, about_centre(factor, 0, 0, factor), out);
  };
}

Effect translate(const EffectParams& params) {
  return [params](const uint8_t* in, Rng& rng, uint8_t* out) {
    const double pixels = kTranslate[params.severity - 1];
    const double x = rng.coin() ? pixels : -pixels, y = rng.coin() ? pixels : -pixels;
    warp(in, params, {1, 0, x, 0, 1, y}, out);
  };
}

// The outer quarters of the columns inverted.
Effect stripe(const EffectParams&) {
  return [](const uint8_t* in, Rng&, uint8_t* out) {
    for (int i = 0; i < kSide * kSide; ++i) {
      const int column = i % kSide;
      out[i] = column < 7 || column >= 21 ? 255 - in[i] : in[i];
    }
  };
}

Effect dotted_line(const EffectParams& params) {
  return [rounding = params.rounding()](const uint8_t* in, Rng& rng, uint8_t* out) {
    Layer line{}, layer;
    const int r0 = rng.below(27), r1 = rng.below(27);
    add_line(0, r0, 27, r1, line);
    to_layer(in, layer);
    for (int i = 0; i < kSide * kSide; ++i) {
      const bool dot = i % kSide % 4 >= 2;  // two columns off, two on
      if (dot) layer[i] = std::min(layer[i] + line[i], 1.0);
    }
    from_layer(layer, rounding, out);
  };
}

Effect zigzag(const EffectParams& params) {
  return [rounding = params.rounding()](const uint8_t* in, Rng& rng, uint8_t* out) {
    constexpr double kFirst = 2, kLast = 25;
    const int r0 = rng.below(27), rise = rng.below(10) - 5;
    const double angle = std::atan(rise / (kLast - kFirst));
    const double cosine = std::cos(angle), sine = std::sin(angle);
    std::vector<Point> corners = zigzag_corners((kLast - kFirst) / cosine);
    for (Point& p : corners) {
      p = {cosine * p.column - sine * p.row + kFirst, sine * p.column + cosine * p.row + r0};
    }
    Layer layer;
    to_layer(in, layer);
    for (size_t i = 1; i < corners.size(); ++i) {
      add_line(corners[i - 1].column, corners[i - 1].row, corners[i].column, corners[i].row, layer);
    }
    from_layer(layer, rounding, out);
  };
}

}  // namespace qact::corrupt
