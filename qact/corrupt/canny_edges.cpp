// scikit-image's Canny edges: its own smoothing, thinning and thresholds.
#include <cmath>
#include <vector>

#include "qact/corrupt/effects.h"
#include "qact/corrupt/gaussian.h"

namespace qact::corrupt {
namespace {

constexpr double kSigma = 1, kLow = .1, kHigh = .2;
constexpr int kRadius = 4;

struct Field {
  image::Size size;
  std::vector<double> values;

  double at(int y, int x) const { return values[y * size.width + x]; }
};

// A Gaussian over the pixels inside the image, normalised by its weight there.
Field smooth(const uint8_t* in, image::Size size) {
  const std::vector<double> weights = gaussian_weights(kSigma, kRadius);
  const auto pass = [&](const Field& field, int dy, int dx) {
    Field out{size, {}};
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        double sum = 0;
        for (int k = -kRadius; k <= kRadius; ++k) {
          const int v = y + k * dy, u = x + k * dx;
          if (v < 0 || u < 0 || v >= size.height || u >= size.width) continue;
          sum += weights[k + kRadius] * field.at(v, u);
        }
        out.values.push_back(sum);
      }
    }
    return out;
  };
  Field image{size, {in, in + size.values()}};
  for (double& v : image.values) v /= 255;
  const Field inside{size, std::vector<double>(size.values(), 1)};
  image = pass(pass(image, 1, 0), 0, 1);
  const Field weight = pass(pass(inside, 1, 0), 0, 1);
  for (size_t i = 0; i < image.values.size(); ++i) image.values[i] /= weight.values[i] + 1e-16;
  return image;
}

// Non-maximum suppression: whether the magnitude is at least that on either side along the gradient
// (gy, gx), interpolated between neighbours.
bool is_ridge(const Field& magnitude, int y, int x, double gy, double gx) {
  const double ay = std::abs(gy), ax = std::abs(gx);
  const bool steep = ay >= ax;
  const double share = steep ? ax / ay : ay / ax;
  const int sy = gy >= 0 ? 1 : -1, sx = gx >= 0 ? 1 : -1;
  const auto beside = [&](int side) {
    const double straight = steep ? magnitude.at(y + side * sy, x) : magnitude.at(y, x + side * sx);
    return share * magnitude.at(y + side * sy, x + side * sx) + (1 - share) * straight;
  };
  const double here = magnitude.at(y, x);
  return beside(1) <= here && beside(-1) <= here;
}

// Hysteresis: keeps ridges above kLow that are connected (8 neighbours) to one of kHigh or more.
void grow(const Field& magnitude, const std::vector<bool>& ridge, uint8_t* out) {
  const auto [height, width, channels] = magnitude.size;
  std::vector<int> open;
  for (int i = 0; i < height * width; ++i) {
    out[i] = ridge[i] && magnitude.values[i] >= kHigh ? 255 : 0;
    if (out[i]) open.push_back(i);
  }
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    // A ridge never lies on the image's edge, so all neighbours exist.
    for (const int j : {i - width - 1, i - width, i - width + 1, i - 1, i + 1, i + width - 1,
                        i + width, i + width + 1}) {
      if (out[j] || !ridge[j] || magnitude.values[j] < kLow) continue;
      out[j] = 255;
      open.push_back(j);
    }
  }
}

}  // namespace

Effect canny_edges(const EffectParams& params) {
  return [size = params.size](const uint8_t* in, Rng&, uint8_t* out) {
    const Field image = smooth(in, size);
    Field down{size, {}}, across{size, {}}, magnitude{size, {}};
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        const auto at = [&](int dy, int dx) {
          return image.at(border_index(Border::reflect, y + dy, size.height),
                          border_index(Border::reflect, x + dx, size.width));
        };
        const double gy =
            at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
        const double gx =
            at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
        down.values.push_back(gy);
        across.values.push_back(gx);
        magnitude.values.push_back(std::hypot(gy, gx));
      }
    }
    std::vector<bool> ridge(size.values());
    for (int y = 1; y + 1 < size.height; ++y) {
      for (int x = 1; x + 1 < size.width; ++x) {
        ridge[y * size.width + x] =
            magnitude.at(y, x) > 0 && is_ridge(magnitude, y, x, down.at(y, x), across.at(y, x));
      }
    }
    grow(magnitude, ridge, out);
  };
}

}  // namespace qact::corrupt
