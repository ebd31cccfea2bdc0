#include "qact/image/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "qact/base/fail.h"

namespace qact::image {

namespace {

using base::fail;

constexpr int kFractionBits = 22;

// The inputs of one output value and their weights.
struct Taps {
  int first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> triangle_taps(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double reach = std::max(scale, 1.0);
  std::vector<Taps> out(to);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int last = std::min(from, static_cast<int>(centre + reach + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int x = first; x < last; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((x - centre + 0.5) / reach)));
      sum += weights.back();
    }
    out[i].first = first;
    for (const double w : weights) {
      out[i].weights.push_back(static_cast<int32_t>(w / sum * (1 << kFractionBits) + 0.5));
    }
  }
  return out;
}

// One output value from inputs `step` apart.
uint8_t weighted_sum(const Taps& taps, const uint8_t* from, int64_t step) {
  int32_t sum = 1 << (kFractionBits - 1);
  for (size_t i = 0; i < taps.weights.size(); ++i) sum += taps.weights[i] * from[i * step];
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

}  // namespace

Image resize_bilinear(const Image& image, int height, int width) {
  const int channels = image.size.channels;
  const std::vector<Taps> across = triangle_taps(image.size.width, width);
  Image narrow({image.size.height, width, channels});
  for (int y = 0; y < narrow.size.height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      const Taps& taps = across[i / channels];
      narrow.row(y)[i] =
          weighted_sum(taps, image.row(y) + taps.first * channels + i % channels, channels);
    }
  }
  const std::vector<Taps> down = triangle_taps(image.size.height, height);
  Image out({height, width, channels});
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      out.row(y)[i] =
          weighted_sum(down[y], narrow.row(down[y].first) + i, int64_t{width} * channels);
    }
  }
  return out;
}

Image resize_shorter(const Image& image, int side) {
  const auto [height, width, channels] = image.size;
  if (std::min(height, width) == side) return image;
  const auto other = [side](int64_t longer, int shorter) {
    return static_cast<int>(side * longer / shorter);
  };
  return height <= width ? resize_bilinear(image, side, other(width, height))
                         : resize_bilinear(image, other(height, width), side);
}

Image centre_crop(const Image& image, int height, int width) {
  if (image.size.height < height || image.size.width < width) {
    fail("crop", "expected an image of at least ", height, "x", width, ", got ", image.size.height,
         "x", image.size.width);
  }
  // Halves to even, as torchvision rounds.
  const int top = static_cast<int>(std::nearbyint((image.size.height - height) / 2.0));
  const int left = static_cast<int>(std::nearbyint((image.size.width - width) / 2.0));
  Image out({height, width, image.size.channels});
  for (int y = 0; y < height; ++y) {
    std::copy_n(image.row(top + y) + left * image.size.channels, width * image.size.channels,
                out.row(y));
  }
  return out;
}

}  // namespace qact::image
