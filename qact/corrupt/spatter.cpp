#include <algorithm>
#include <cmath>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/gaussian.h"
#include "qact/corrupt/water.h"

namespace qact::corrupt {
namespace {

// By channel; grey images take the first.
constexpr float kMud[3] = {63, 42, 20}, kWater[3] = {175, 238, 238};

std::vector<double> liquid_layer(const SpatterConstants& constants, image::Size size,
                                 const GaussianBlur& blur, Rng& rng) {
  std::vector<double> layer(size.values());
  for (double& value : layer) value = constants.mean + constants.deviation * rng.normal();
  blur(layer, size);
  for (double& value : layer) value = value < constants.threshold ? 0 : value;
  return layer;
}

}  // namespace

Effect spatter(const EffectParams& params) {
  const SpatterConstants constants = kSpatter.at(params);
  const GaussianBlur blur(constants.sigma), soften(constants.strength);
  const bool mud = constants.mud || params.mnist;
  return [=](const uint8_t* in, Rng& rng, uint8_t* out) {
    const auto [height, width, channels] = params.size;
    const image::Size plane{height, width, 1};
    const std::vector<double> layer = liquid_layer(constants, plane, blur, rng);
    std::vector<float> mask(layer.size());
    if (mud) {
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = layer[i] > constants.threshold;
      soften(mask, plane);
      for (float& value : mask) value = value < 0.8f ? 0 : value;
    } else {
      mask = water_mask(layer, plane);
      for (float& value : mask) value *= static_cast<float>(constants.strength);
    }
    std::vector<float> values = from_bytes<float>(in, params.size.values());
    for (size_t i = 0; i < mask.size(); ++i) {
      for (int c = 0; c < channels; ++c) {
        float& x = values[i * channels + c];
        x = mud ? x * (1 - mask[i]) + mask[i] * (kMud[c] / 255) : x + mask[i] * (kWater[c] / 255);
      }
    }
    to_bytes(values, params.rounding(), out);
  };
}

}  // namespace qact::corrupt
