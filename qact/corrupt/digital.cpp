#include <algorithm>
#include <cmath>
#include <cstring>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/image/codec.h"

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

}  // namespace

// V + c in HSV: the hue and the saturation stay, so the channels keep their ratios.
Effect brightness(const Setting& setting) {
  const float added = 255 * static_cast<float>(kBrightness.at(setting));
  return [setting, added](const uint8_t* in, Draw&, uint8_t* out) {
    const int channels = setting.size.channels;
    for (int64_t i = 0; i < setting.size.values(); i += channels) {
      const float value = *std::max_element(in + i, in + i + channels);
      const float brighter = std::min(value + added, 255.0f);
      const float ratio = value > 0 ? brighter / value : 0;
      for (int c = 0; c < channels; ++c) {
        out[i + c] = to_byte(brighter - (value - in[i + c]) * ratio, setting.half());
      }
    }
  };
}

// S -> a S + b in HSV. A grey pixel has hue 0, so b tints it red.
Effect saturate(const Setting& setting) {
  const float a = static_cast<float>(kSaturate.at(setting).factor);
  const float b = static_cast<float>(kSaturate.at(setting).offset);
  if (setting.size.channels == 1) {
    // MNIST-C applies a and b to all of HSV and takes the luma of the result.
    const float sector = 6 * b, fraction = sector - std::floor(sector);
    const float low = 1 - b, falling = 1 - fraction * b, rising = 1 - (1 - fraction) * b;
    const float luma = sector < 1 ? .2125f + .7154f * rising + .0721f * low
                                  : .2125f * falling + .7154f + .0721f * low;
    return [=](const uint8_t* in, Draw&, uint8_t* out) {
      for (int64_t i = 0; i < setting.size.values(); ++i) {
        out[i] = to_byte(std::min(a * in[i] + 255 * b, 255.0f) * luma, setting.half());
      }
    };
  }
  return [=](const uint8_t* in, Draw&, uint8_t* out) {
    for (int64_t i = 0; i < setting.size.values(); i += 3) {
      const float value = std::max({in[i], in[i + 1], in[i + 2]});
      const float range = value - std::min({in[i], in[i + 1], in[i + 2]});
      if (range == 0) {
        out[i] = static_cast<uint8_t>(value);
        out[i + 1] = out[i + 2] = to_byte(value * (1 - b), setting.half());
        continue;
      }
      const float ratio = std::clamp(a * range / value + b, 0.0f, 1.0f) * value / range;
      for (int c = 0; c < 3; ++c) {
        out[i + c] = to_byte(value - (value - in[i + c]) * ratio, setting.half());
      }
    }
  };
}

// (x - mean) c + mean, the mean of each channel.
Effect contrast(const Setting& setting) {
  const float factor = static_cast<float>(kContrast.at(setting));
  return [setting, factor](const uint8_t* in, Draw&, uint8_t* out) {
    const int channels = setting.size.channels;
    const int64_t n = setting.size.values();
    int64_t sum[3] = {};
    for (int64_t i = 0; i < n; i += channels) {
      for (int c = 0; c < channels; ++c) sum[c] += in[i + c];
    }
    // A byte has one image under the map of its channel.
    uint8_t map[3][256];
    for (int c = 0; c < channels; ++c) {
      const double mean = static_cast<double>(sum[c]) * channels / static_cast<double>(n);
      for (int v = 0; v < 256; ++v) {
        map[c][v] = to_byte(static_cast<float>((v - mean) * factor + mean), setting.half());
      }
    }
    for (int64_t i = 0; i < n; i += channels) {
      for (int c = 0; c < channels; ++c) out[i + c] = map[c][in[i + c]];
    }
  };
}

Effect pixelate(const Setting& setting) {
  const auto [height, width, channels] = setting.size;
  const double factor = kPixelate.at(setting);
  const image::Size small{std::max(static_cast<int>(height * factor), 1),
                          std::max(static_cast<int>(width * factor), 1), channels};
  return [size = setting.size, small, down_rows = box_axis(height, small.height),
          down_columns = box_axis(width, small.width), up_rows = box_axis(small.height, height),
          up_columns = box_axis(small.width, width)](const uint8_t* in, Draw&, uint8_t* out) {
    std::vector<uint8_t> pixels(small.values());
    resize_box(in, size, down_rows, down_columns, pixels.data());
    resize_box(pixels.data(), small, up_rows, up_columns, out);
  };
}

Effect jpeg_compression(const Setting& setting) {
  return [setting, quality = kJpegQuality.at(setting)](const uint8_t* in, Draw&, uint8_t* out) {
    image::Image picture(setting.size);
    std::memcpy(picture.pixels.data(), in, picture.pixels.size());
    picture = image::decode_jpeg(image::encode_jpeg(picture, quality), setting.size.channels);
    std::memcpy(out, picture.pixels.data(), picture.pixels.size());
  };
}

}  // namespace qact::corrupt
