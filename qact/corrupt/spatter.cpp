#include <algorithm>
#include <cmath>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/filter.h"
#include "qact/corrupt/water.h"

namespace qact::corrupt {
namespace {

// By channel; grey images take the first.
constexpr float kMud[3] = {63, 42, 20}, kWater[3] = {175, 238, 238};

std::vector<float> liquid_layer(const SpatterConstants& constants, image::Size size,
                                const GaussianBlur& blur, Draw& draw) {
  std::vector<float> layer(size.values());
  for (float& value : layer) {
    value = static_cast<float>(constants.mean + constants.deviation * draw.normal());
  }
  blur(layer, size);
  const float threshold = static_cast<float>(constants.threshold);
  for (float& value : layer) value = value < threshold ? 0 : value;
  return layer;
}

}  // namespace

Effect spatter(const Setting& setting) {
  const SpatterConstants constants = kSpatter.at(setting);
  const GaussianBlur blur(constants.sigma), soften(constants.strength);
  const bool mud = constants.mud || setting.mnist;
  return [=](const uint8_t* in, Draw& draw, uint8_t* out) {
    const auto [height, width, channels] = setting.size;
    const image::Size plane{height, width, 1};
    std::vector<float> mask = liquid_layer(constants, plane, blur, draw);
    if (mud) {
      for (float& value : mask) value = value > static_cast<float>(constants.threshold);
      soften(mask, plane);
      for (float& value : mask) value = value < 0.8f ? 0 : value;
    } else {
      mask = water_mask(mask, plane);
      for (float& value : mask) value *= static_cast<float>(constants.strength);
    }
    for (size_t i = 0; i < mask.size(); ++i) {
      for (int c = 0; c < channels; ++c) {
        const float x = in[i * channels + c];
        const float value = mud ? x * (1 - mask[i]) + mask[i] * kMud[c] : x + mask[i] * kWater[c];
        out[i * channels + c] = to_byte(value, setting.half());
      }
    }
  };
}

}  // namespace qact::corrupt
