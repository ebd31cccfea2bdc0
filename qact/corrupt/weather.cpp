#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/motion.h"
#include "qact/corrupt/plasma.h"
#include "qact/corrupt/resample.h"

namespace qact::corrupt {
namespace {

// Flakes: bright points of zoomed noise, with motion blur; whole numbers in [0, 255].
std::vector<float> snow_layer(const SnowConstants& constants, image::Size size, const Axis& rows,
                              const Axis& columns, const MotionBlur& wind, Rng& rng) {
  std::vector<double> noise(size.values()), zoomed(size.values());
  for (double& value : noise) value = constants.mean + constants.deviation * rng.normal();
  add_resampled(noise.data(), size, rows, columns, 1.0, zoomed.data());
  std::vector<float> layer(size.values());
  for (size_t i = 0; i < layer.size(); ++i) {
    const double value = zoomed[i] < constants.threshold ? 0 : zoomed[i];
    layer[i] = static_cast<float>(static_cast<int>(std::clamp(value, 0.0, 1.0) * 255));
  }
  wind(layer, size, rng.uniform(-135, -45));
  return layer;
}

float grey(const float* pixel, int channels) {
  return channels == 1 ? pixel[0] : .299f * pixel[0] + .587f * pixel[1] + .114f * pixel[2];
}

}  // namespace

Effect snow(const EffectParams& params) {
  const SnowConstants constants = kSnow.at(params);
  const Axis rows = zoom_axis(params.size.height, constants.zoom);
  const Axis columns = zoom_axis(params.size.width, constants.zoom);
  const MotionBlur wind(constants.motion);
  return [=](const uint8_t* in, Rng& rng, uint8_t* out) {
    const auto [height, width, channels] = params.size;
    const std::vector<float> layer =
        snow_layer(constants, {height, width, 1}, rows, columns, wind, rng);
    const int pixels = height * width;
    const float keep = static_cast<float>(constants.image);
    const float fade = static_cast<float>(1 - constants.image);
    // The image in float32 and the flakes in double, as in the original.
    const std::vector<float> values = from_bytes<float>(in, params.size.values());
    for (int i = 0; i < pixels; ++i) {
      // The layer, and the layer rotated by 180 degrees.
      const double flakes = layer[i] / 255.0, rotated = layer[pixels - 1 - i] / 255.0;
      const float* pixel = values.data() + int64_t{i} * channels;
      const float white = grey(pixel, channels) * 1.5f + 0.5f;
      for (int c = 0; c < channels; ++c) {
        const float x = keep * pixel[c] + fade * std::max(pixel[c], white);
        out[int64_t{i} * channels + c] =
            to_byte(std::min(x + flakes + rotated, 1.0) * 255, params.rounding());
      }
    }
  };
}

Effect frost(const EffectParams& params) {
  const auto [height, width, channels] = params.size;
  const double texture_scale = params.scale == Scale::cifar  ? .2
                               : params.scale == Scale::tiny ? .3
                                                             : 1;
  const bool seamless = params.frost->seamless();
  const auto textures = std::make_shared<const std::vector<image::Image>>(
      params.frost->prepared(texture_scale, channels));
  for (const image::Image& texture : *textures) {
    if (!seamless && (texture.size.height <= height || texture.size.width <= width)) {
      throw std::invalid_argument("[frost] expected textures larger than the image of " +
                                  std::to_string(height) + " x " + std::to_string(width) +
                                  ", got one of " + std::to_string(texture.size.height) + " x " +
                                  std::to_string(texture.size.width));
    }
  }
  return [params, seamless, textures, constants = kFrost.at(params)](const uint8_t* in, Rng& rng,
                                                                     uint8_t* out) {
    const auto [height, width, channels] = params.size;
    const image::Image& texture = (*textures)[rng.below(5)];
    const int top = rng.below(texture.size.height - (seamless ? 0 : height));
    const int left = rng.below(texture.size.width - (seamless ? 0 : width));
    for (int y = 0; y < height; ++y) {
      const uint8_t* ice = texture.row((top + y) % texture.size.height);
      for (int x = 0; x < width; ++x) {
        const int from = (left + x) % texture.size.width * channels;
        const int64_t i = (int64_t{y} * width + x) * channels;
        for (int c = 0; c < channels; ++c) {
          out[i + c] = to_byte(constants.image * in[i + c] + constants.texture * ice[from + c],
                               params.rounding());
        }
      }
    }
  };
}

Effect fog(const EffectParams& params) {
  const FogConstants constants = kFog.at(params);
  const int least = params.scale == Scale::cifar ? 32 : params.scale == Scale::tiny ? 64 : 256;
  const int side = std::max<int>(
      least, std::bit_ceil(static_cast<unsigned>(std::max(params.size.height, params.size.width))));
  return [=](const uint8_t* in, Rng& rng, uint8_t* out) {
    const auto [height, width, channels] = params.size;
    const std::vector<float> mist = plasma(side, constants.decay, rng);
    const float thickness = 255 * static_cast<float>(constants.thickness);
    const float brightest = *std::max_element(in, in + params.size.values());
    const float scale = brightest / (brightest + thickness);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float added = thickness * mist[int64_t{y} * side + x];
        const int64_t i = (int64_t{y} * width + x) * channels;
        for (int c = 0; c < channels; ++c) {
          out[i + c] = to_byte((in[i + c] + added) * scale, params.rounding());
        }
      }
    }
  };
}

}  // namespace qact::corrupt
