#include <cmath>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/filter.h"
#include "qact/corrupt/gaussian.h"
#include "qact/corrupt/motion.h"
#include "qact/corrupt/resample.h"

namespace qact::corrupt {
namespace {

// A disk of equal weights, smoothed by a small Gaussian against its jagged edge.
std::vector<Tap> disk(DefocusConstants constants) {
  const int reach = constants.radius <= 8 ? 8 : static_cast<int>(constants.radius);
  const int side = 2 * reach + 1, alias_radius = constants.radius <= 8 ? 1 : 2;
  std::vector<float> plain(side * side), smooth(side * side);
  int inside = 0;
  for (int y = -reach; y <= reach; ++y) {
    for (int x = -reach; x <= reach; ++x) {
      if (x * x + y * y > constants.radius * constants.radius) continue;
      plain[(y + reach) * side + x + reach] = 1;
      ++inside;
    }
  }
  for (float& weight : plain) weight /= static_cast<float>(inside);
  // Along the rows, then along the columns, in float32 as OpenCV does it.
  const auto weights = gaussian_weights(constants.alias_sigma, alias_radius);
  std::vector<Tap> across, down;
  for (int k = -alias_radius; k <= alias_radius; ++k) {
    across.push_back({0, k, weights[k + alias_radius]});
    down.push_back({k, 0, weights[k + alias_radius]});
  }
  correlate(plain.data(), {side, side, 1}, Border::reflect101, across, smooth.data());
  correlate(smooth.data(), {side, side, 1}, Border::reflect101, down, plain.data());
  std::vector<Tap> taps;  // its lower half: correlate_mirrored adds the upper
  for (int i = reach * side; i < side * side; ++i) {
    if (plain[i] > 1e-17f) taps.push_back({i / side - reach, i % side - reach, plain[i]});
  }
  return taps;
}

// The published loop, from the lower right corner up. In RGB its "swap" is a copy,
// since numpy's rows are views; on MNIST's grey values it swaps, at half of the pixels.
void shuffle(std::vector<uint8_t>& pixels, const EffectParams& setting, int reach, Draw& draw) {
  const auto [height, width, channels] = setting.size;
  for (int y = height - reach; y > reach; --y) {
    for (int x = width - reach; x > reach; --x) {
      if (setting.mnist && draw.coin()) continue;
      const uint64_t bits = draw.bits();
      const uint64_t range = 2 * static_cast<uint64_t>(reach);
      const int dy = static_cast<int>((bits >> 32) * range >> 32) - reach;
      const int dx = static_cast<int>((bits & 0xffffffff) * range >> 32) - reach;
      uint8_t* here = &pixels[(int64_t{y} * width + x) * channels];
      uint8_t* there = here + (int64_t{dy} * width + dx) * channels;
      if (setting.mnist) {
        std::swap(*here, *there);
      } else {
        for (int c = 0; c < channels; ++c) here[c] = there[c];
      }
    }
  }
}

}  // namespace

Effect defocus_blur(const EffectParams& setting) {
  return [setting, taps = disk(kDefocusBlur.at(setting))](const uint8_t* in, Draw&, uint8_t* out) {
    const std::vector<double> values = from_bytes<double>(in, setting.size.values());
    std::vector<double> blurred(values.size());
    correlate_mirrored(values.data(), setting.size, Border::reflect101, taps, blurred.data());
    to_bytes(blurred, setting.rounding(), out);
  };
}

Effect gaussian_blur(const EffectParams& setting) {
  const GaussianBlur blur(kGaussianBlur.at(setting), 4, Border::clamp, setting.mnist);
  return [setting, blur](const uint8_t* in, Draw&, uint8_t* out) {
    std::vector<double> values = from_bytes<double>(in, setting.size.values());
    blur(values, setting.size);
    to_bytes(values, setting.rounding(), out);
  };
}

Effect glass_blur(const EffectParams& setting) {
  const GlassConstants constants = kGlassBlur.at(setting);
  const GaussianBlur blur(constants.sigma, 4, Border::clamp, setting.mnist);
  return [setting, constants, blur](const uint8_t* in, Draw& draw, uint8_t* out) {
    const int64_t n = setting.size.values();
    std::vector<double> values = from_bytes<double>(in, n);
    std::vector<uint8_t> pixels(n);
    blur(values, setting.size);
    to_bytes(values, Rounding::down, pixels.data());
    for (int i = 0; i < constants.rounds; ++i) shuffle(pixels, setting, constants.reach, draw);
    values = from_bytes<double>(pixels.data(), n);
    blur(values, setting.size);
    to_bytes(values, setting.rounding(), out);
  };
}

Effect motion_blur(const EffectParams& setting) {
  const MotionBlur blur(kMotionBlur.at(setting));
  return [setting, blur](const uint8_t* in, Draw& draw, uint8_t* out) {
    std::vector<float> values(in, in + setting.size.values());
    blur(values, setting.size, draw.uniform(-45, 45));
    std::copy(values.begin(), values.end(), out);
  };
}

Effect zoom_blur(const EffectParams& setting) {
  struct Zoom {
    Axis rows, columns;
    int times;
  };
  const ZoomConstants constants = kZoomBlur.at(setting);
  const int count = static_cast<int>(std::ceil((constants.stop - 1) / constants.step));
  // The step as numpy's range has it, rounded next to 1.
  const double step = (1 + constants.step) - 1;
  std::vector<Zoom> zooms;
  for (int i = 0; i < count; ++i) {
    const double factor = 1 + i * step;
    Zoom zoom{zoom_axis(setting.size.height, factor), zoom_axis(setting.size.width, factor), 1};
    if (!zooms.empty() && zooms.back().rows == zoom.rows && zooms.back().columns == zoom.columns) {
      ++zooms.back().times;
    } else {
      zooms.push_back(zoom);
    }
  }
  return [setting, zooms, count](const uint8_t* in, Draw&, uint8_t* out) {
    // Four channels for three: a pixel is then one vector.
    const int channels = setting.size.channels, padded = channels == 3 ? 4 : 1;
    const image::Size size{setting.size.height, setting.size.width, padded};
    std::vector<float> values(size.values());
    const int pixels = setting.size.height * setting.size.width;
    for (int i = 0; i < pixels; ++i) {
      for (int c = 0; c < channels; ++c) values[i * padded + c] = in[i * channels + c];
    }
    std::vector<float> sum = values;
    for (const Zoom& zoom : zooms) {
      add_resampled(values.data(), size, zoom.rows, zoom.columns, static_cast<float>(zoom.times),
                    sum.data());
    }
    const float scale = 1.0f / static_cast<float>(count + 1);
    for (int i = 0; i < pixels; ++i) {
      for (int c = 0; c < channels; ++c) {
        out[i * channels + c] = to_byte(sum[i * padded + c] * scale, setting.rounding());
      }
    }
  };
}

}  // namespace qact::corrupt
