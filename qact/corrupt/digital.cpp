#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/image/jpeg.h"

namespace qact::corrupt {
namespace {

// Pillow's box filter along one axis, with weights of 22 fractional bits.
constexpr int kWeightBits = 22;
struct BoxTaps {
  int first;
  std::vector<int> weights;
};

std::vector<BoxTaps> box_axis(int from, int to) {
  const double scale = static_cast<double>(from) / to, width = std::max(scale, 1.0);
  std::vector<BoxTaps> axis;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - width / 2 + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + width / 2 + 0.5), from);
    std::vector<double> share;
    double sum = 0;
    for (int j = first; j < end; ++j) {
      const double place = (j - centre + 0.5) / width;
      share.push_back(place > -0.5 && place <= 0.5);
      sum += share.back();
    }
    BoxTaps taps{first, {}};
    for (const double s : share) {
      taps.weights.push_back(static_cast<int>(0.5 + s / sum * (1 << kWeightBits)));
    }
    axis.push_back(taps);
  }
  return axis;
}

// Each of `lines` lines of `in`, along an axis whose pixels lie `step` apart.
void resize_lines(const uint8_t* in, const std::vector<BoxTaps>& axis, int lines, int in_line,
                  int out_line, int step, int channels, uint8_t* out) {
  for (int line = 0; line < lines; ++line) {
    for (size_t i = 0; i < axis.size(); ++i) {
      const uint8_t* pixel = in + line * in_line + axis[i].first * step;
      uint8_t* target = out + line * out_line + static_cast<int>(i) * step;
      for (int c = 0; c < channels; ++c) {
        int sum = 1 << (kWeightBits - 1);
        for (size_t k = 0; k < axis[i].weights.size(); ++k) {
          sum += axis[i].weights[k] * pixel[static_cast<int>(k) * step + c];
        }
        target[c] = static_cast<uint8_t>(std::min(sum >> kWeightBits, 255));
      }
    }
  }
}

// `in` of height x width; the axes say the new size.
void resize_box(const uint8_t* in, image::Size size, const std::vector<BoxTaps>& rows,
                const std::vector<BoxTaps>& columns, uint8_t* out) {
  const int channels = size.channels, width = static_cast<int>(columns.size());
  std::vector<uint8_t> narrow(int64_t{size.height} * width * channels);
  resize_lines(in, columns, size.height, size.width * channels, width * channels, channels,
               channels, narrow.data());
  resize_lines(narrow.data(), rows, width, channels, channels, width * channels, channels, out);
}

// Hue, saturation and value in [0, 1], and back, in the operations of scikit-image: where a result
// is next to a whole number, the last bit decides.
struct Hsv {
  double h, s, v;
};

Hsv to_hsv(double r, double g, double b) {
  const double most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range == 0) return {0, 0, most};
  const double sector = b == most   ? 4 + (r - g) / range
                        : g == most ? 2 + (b - r) / range
                                    : (g - b) / range;
  return {sector < 0 ? sector / 6 + 1 : sector / 6, range / most, most};
}

std::array<double, 3> to_rgb(const Hsv& colour) {
  const auto [h, s, v] = colour;
  const double sector = std::floor(h * 6), fraction = h * 6 - sector;
  const double low = v * (1 - s), falling = v * (1 - fraction * s);
  const double rising = v * (1 - (1 - fraction) * s);
  switch (static_cast<int>(sector) % 6) {
    case 0:
      return {v, rising, low};
    case 1:
      return {falling, v, low};
    case 2:
      return {low, v, rising};
    case 3:
      return {low, falling, v};
    case 4:
      return {rising, low, v};
    default:
      return {v, low, falling};
  }
}

// A grey pixel goes through as one of three equal channels, and comes back as their luma.
template <class Change>
Effect in_hsv(const EffectParams& params, const Change& change) {
  std::array<double, 256> unit;  // v / 255, divided once
  for (int v = 0; v < 256; ++v) unit[v] = v / 255.0;
  return [params, change, unit](const uint8_t* in, Rng&, uint8_t* out) {
    const int channels = params.size.channels, last = channels - 1;
    for (int64_t i = 0; i < params.size.values(); i += channels) {
      const uint8_t* pixel = in + i;
      const auto rgb =
          to_rgb(change(to_hsv(unit[pixel[0]], unit[pixel[last / 2]], unit[pixel[last]])));
      if (channels == 1) {
        const double luma = .2125 * rgb[0] + .7154 * rgb[1] + .0721 * rgb[2];
        out[i] = to_byte(luma * 255, params.rounding());
      }
      for (int c = 0; c < channels && channels == 3; ++c) {
        out[i + c] = to_byte(rgb[c] * 255, params.rounding());
      }
    }
  };
}

}  // namespace

// V + c in HSV.
Effect brightness(const EffectParams& params) {
  return in_hsv(params, [added = kBrightness.at(params)](const Hsv& colour) {
    return Hsv{colour.h, colour.s, std::min(colour.v + added, 1.0)};
  });
}

// S -> a S + b in HSV. A grey pixel has hue 0, so b tints it red. MNIST-C does so to all of HSV.
Effect saturate(const EffectParams& params) {
  const auto changed = [constants = kSaturate.at(params)](double x) {
    return std::min(x * constants.factor + constants.offset, 1.0);
  };
  if (params.size.channels == 1) {
    return in_hsv(params, [changed](const Hsv& colour) {
      return Hsv{changed(colour.h), changed(colour.s), changed(colour.v)};
    });
  }
  return in_hsv(
      params, [changed](const Hsv& colour) { return Hsv{colour.h, changed(colour.s), colour.v}; });
}

// (x - mean) c + mean, the mean of each channel.
Effect contrast(const EffectParams& params) {
  const double factor = kContrast.at(params);
  return [params, factor](const uint8_t* in, Rng&, uint8_t* out) {
    const int channels = params.size.channels;
    const int64_t n = params.size.values();
    int64_t sum[3] = {};
    for (int64_t i = 0; i < n; i += channels) {
      for (int c = 0; c < channels; ++c) sum[c] += in[i + c];
    }
    // One table per channel.
    uint8_t map[3][256];
    for (int c = 0; c < channels; ++c) {
      const double mean = static_cast<double>(sum[c]) * channels / static_cast<double>(n) / 255;
      for (int v = 0; v < 256; ++v) {
        map[c][v] = to_byte(((v / 255.0 - mean) * factor + mean) * 255, params.rounding());
      }
    }
    for (int64_t i = 0; i < n; i += channels) {
      for (int c = 0; c < channels; ++c) out[i + c] = map[c][in[i + c]];
    }
  };
}

Effect pixelate(const EffectParams& params) {
  const auto [height, width, channels] = params.size;
  const double factor = kPixelate.at(params);
  const image::Size small{std::max(static_cast<int>(height * factor), 1),
                          std::max(static_cast<int>(width * factor), 1), channels};
  return [size = params.size, small, down_rows = box_axis(height, small.height),
          down_columns = box_axis(width, small.width), up_rows = box_axis(small.height, height),
          up_columns = box_axis(small.width, width)](const uint8_t* in, Rng&, uint8_t* out) {
    std::vector<uint8_t> pixels(small.values());
    resize_box(in, size, down_rows, down_columns, pixels.data());
    resize_box(pixels.data(), small, up_rows, up_columns, out);
  };
}

Effect jpeg_compression(const EffectParams& params) {
  return [params, quality = kJpegQuality.at(params)](const uint8_t* in, Rng&, uint8_t* out) {
    image::Image image(params.size);
    std::memcpy(image.pixels.data(), in, image.pixels.size());
    image = image::decode_jpeg(image::encode_jpeg(image, quality), params.size.channels);
    std::memcpy(out, image.pixels.data(), image.pixels.size());
  };
}

}  // namespace qact::corrupt
