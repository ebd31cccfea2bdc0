#include <cmath>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"
#include "qact/corrupt/filter.h"
#include "qact/corrupt/gaussian.h"
#include "qact/corrupt/motion.h"
#include "qact/corrupt/resample.h"

namespace qact::corrupt {
namespace {

// A disk of equal weights, antialiased by a small Gaussian.
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
  std::vector<Tap> taps;  // the lower half, for correlate_mirrored()
  for (int i = reach * side; i < side * side; ++i) {
    if (plain[i] > 1e-17f) taps.push_back({i / side - reach, i % side - reach, plain[i]});
  }
  return taps;
}

// The published loop, from the lower right corner up. In RGB its "swap" is a copy,
// since numpy's rows are views; on MNIST's grey values it swaps, at half of the pixels.
void shuffle(std::vector<uint8_t>& pixels, const EffectParams& params, int reach, Rng& rng) {
  const auto [height, width, channels] = params.size;
  for (int y = height - reach; y > reach; --y) {
    for (int x = width - reach; x > reach; --x) {
      if (params.mnist && rng.coin()) continue;
      const uint64_t bits = rng.bits();
      const uint64_t range = 2 * static_cast<uint64_t>(reach);
      const int dy = static_cast<int>((bits >> 32) * range >> 32) - reach;
      const int dx = static_cast<int>((bits & 0xffffffff) * range >> 32) - reach;
      uint8_t* here = &pixels[(int64_t{y} * width + x) * channels];
      uint8_t* there = here + (int64_t{dy} * width + dx) * channels;
      if (params.mnist) {
        std::swap(*here, *there);
      } else {
        for (int c = 0; c < channels; ++c) here[c] = there[c];
      }
    }
  }
}

}  // namespace

Effect defocus_blur(const EffectParams& params) {
  return [params, taps = disk(kDefocusBlur.at(params))](const uint8_t* in, Rng&, uint8_t* out) {
    const std::vector<double> values = from_bytes<double>(in, params.size.values());
    std::vector<double> blurred(values.size());
    correlate_mirrored(values.data(), params.size, Border::reflect101, taps, blurred.data());
    to_bytes(blurred, params.rounding(), out);
  };
}

Effect gaussian_blur(const EffectParams& params) {
  const GaussianBlur blur(kGaussianBlur.at(params), 4, Border::clamp, params.mnist);
  return [params, blur](const uint8_t* in, Rng&, uint8_t* out) {
    std::vector<double> values = from_bytes<double>(in, params.size.values());
    blur(values, params.size);
    to_bytes(values, params.rounding(), out);
  };
}

Effect glass_blur(const EffectParams& params) {
  const GlassConstants constants = kGlassBlur.at(params);
  const GaussianBlur blur(constants.sigma, 4, Border::clamp, params.mnist);
  return [params, constants, blur](const uint8_t* in, Rng& rng, uint8_t* out) {
    const int64_t n = params.size.values();
    std::vector<double> values = from_bytes<double>(in, n);
    std::vector<uint8_t> pixels(n);
    blur(values, params.size);
    to_bytes(values, Rounding::down, pixels.data());
    for (int i = 0; i < constants.rounds; ++i) shuffle(pixels, params, constants.reach, rng);
    values = from_bytes<double>(pixels.data(), n);
    blur(values, params.size);
    to_bytes(values, params.rounding(), out);
  };
}

Effect motion_blur(const EffectParams& params) {
  const MotionBlur blur(kMotionBlur.at(params));
  return [params, blur](const uint8_t* in, Rng& rng, uint8_t* out) {
    std::vector<float> values(in, in + params.size.values());
    blur(values, params.size, rng.uniform(-45, 45));
    std::copy(values.begin(), values.end(), out);
  };
}

Effect zoom_blur(const EffectParams& params) {
  struct Zoom {
    Axis rows, columns;
    int times;
  };
  const ZoomConstants constants = kZoomBlur.at(params);
  const int count = static_cast<int>(std::ceil((constants.stop - 1) / constants.step));
  // The step as numpy.arange rounds it.
  const double step = (1 + constants.step) - 1;
  std::vector<Zoom> zooms;
  for (int i = 0; i < count; ++i) {
    const double factor = 1 + i * step;
    Zoom zoom{zoom_axis(params.size.height, factor), zoom_axis(params.size.width, factor), 1};
    if (!zooms.empty() && zooms.back().rows == zoom.rows && zooms.back().columns == zoom.columns) {
      ++zooms.back().times;
    } else {
      zooms.push_back(zoom);
    }
  }
  return [params, zooms, count](const uint8_t* in, Rng&, uint8_t* out) {
    // RGB padded to four channels: a pixel is then one vector.
    const int channels = params.size.channels, padded = channels == 3 ? 4 : 1;
    const image::Size size{params.size.height, params.size.width, padded};
    std::vector<float> values(size.values());
    const int pixels = params.size.height * params.size.width;
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
        out[i * channels + c] = to_byte(sum[i * padded + c] * scale, params.rounding());
      }
    }
  };
}

}  // namespace qact::corrupt
