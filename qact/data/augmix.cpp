#include "qact/data/augmix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace qact::data {
namespace {

using base::Random;
using image::Image;

// Maps each channel through a table of 256 values, which make_table makes from its histogram.
template <class MakeTable>
Image map_channels(const Image& image, const MakeTable& make_table) {
  const int channels = image.size.channels;
  Image out(image.size);
  for (int c = 0; c < channels; ++c) {
    std::array<int, 256> histogram = {};
    for (size_t i = c; i < image.pixels.size(); i += channels) ++histogram[image.pixels[i]];
    const std::array<uint8_t, 256> table = make_table(histogram);
    for (size_t i = c; i < image.pixels.size(); i += channels) {
      out.pixels[i] = table[image.pixels[i]];
    }
  }
  return out;
}

template <class Function>
std::array<uint8_t, 256> tabulate(const Function& function) {
  std::array<uint8_t, 256> out;
  for (int v = 0; v < 256; ++v) out[v] = static_cast<uint8_t>(std::clamp<int>(function(v), 0, 255));
  return out;
}

Image autocontrast(const Image& image, double, bool) {
  return map_channels(image, [](const std::array<int, 256>& histogram) {
    int low = 0, high = 255;
    while (low < 255 && histogram[low] == 0) ++low;
    while (high > 0 && histogram[high] == 0) --high;
    const double scale = high > low ? 255.0 / (high - low) : 1;
    const double offset = high > low ? -low * scale : 0;
    return tabulate([&](int v) { return static_cast<int>(v * scale + offset); });
  });
}

Image equalize(const Image& image, double, bool) {
  return map_channels(image, [](const std::array<int, 256>& histogram) {
    int total = 0, last = 0;
    for (const int count : histogram) {
      total += count;
      if (count > 0) last = count;
    }
    const int step = (total - last) / 255;
    if (step == 0) return tabulate([](int v) { return v; });
    int sum = step / 2;
    return tabulate([&](int v) {
      const int value = sum / step;
      sum += histogram[v];
      return value;
    });
  });
}

// AugMix's int_parameter: `level` of 10 steps up to `max`, truncated.
int int_parameter(double level, double max) { return static_cast<int>(level * max / 10); }

Image posterize(const Image& image, double level, bool) {
  const int mask = ~((1 << (8 - (4 - int_parameter(level, 4)))) - 1);
  return map_channels(image,
                      [mask](const auto&) { return tabulate([mask](int v) { return v & mask; }); });
}

Image solarize(const Image& image, double level, bool) {
  const int threshold = 256 - int_parameter(level, 256);
  return map_channels(image, [threshold](const auto&) {
    return tabulate([threshold](int v) { return v < threshold ? v : 255 - v; });
  });
}

// The output pixel (x, y) is sampled at (a x + b y + c, d x + e y + f), where pixel (i, j) has its
// centre at (i + 0.5, j + 0.5). Bilinear, black outside, truncated to bytes.
struct AffineTransform {
  double a, b, c, d, e, f;
};

Image transform(const Image& image, const AffineTransform& m) {
  const auto [height, width, channels] = image.size;
  Image out(image.size);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double from_x = m.a * (x + 0.5) + m.b * (y + 0.5) + m.c;
      const double from_y = m.d * (x + 0.5) + m.e * (y + 0.5) + m.f;
      if (from_x < 0 || from_x >= width || from_y < 0 || from_y >= height) continue;
      const int left = static_cast<int>(std::floor(from_x - 0.5));
      const int top = static_cast<int>(std::floor(from_y - 0.5));
      const double dx = from_x - 0.5 - left, dy = from_y - 0.5 - top;
      const int x0 = std::max(left, 0) * channels, x1 = std::min(left + 1, width - 1) * channels;
      const uint8_t* upper = image.row(std::max(top, 0));
      const uint8_t* lower = image.row(std::min(top + 1, height - 1));
      for (int c = 0; c < channels; ++c) {
        const double above = upper[x0 + c] + (upper[x1 + c] - upper[x0 + c]) * dx;
        const double below = lower[x0 + c] + (lower[x1 + c] - lower[x0 + c]) * dx;
        out.row(y)[x * channels + c] = static_cast<uint8_t>(above + (below - above) * dy);
      }
    }
  }
  return out;
}

double with_sign(double value, bool positive) { return positive ? value : -value; }

Image rotate(const Image& image, double level, bool positive) {
  const double angle = -with_sign(int_parameter(level, 30), positive) * std::numbers::pi / 180;
  if (angle == 0) return image;
  // 15 decimals, as Pillow rounds them.
  const auto rounded = [](double v) { return std::nearbyint(v * 1e15) / 1e15; };
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double x = image.size.width / 2.0, y = image.size.height / 2.0;
  return transform(image, {cosine, sine, x - cosine * x - sine * y,  //
                           -sine, cosine, y + sine * x - cosine * y});
}

Image shear_x(const Image& image, double level, bool positive) {
  return transform(image, {1, with_sign(level * 0.3 / 10, positive), 0, 0, 1, 0});
}

Image shear_y(const Image& image, double level, bool positive) {
  return transform(image, {1, 0, 0, with_sign(level * 0.3 / 10, positive), 1, 0});
}

Image translate_x(const Image& image, double level, bool positive) {
  const int pixels = int_parameter(level, image.size.width / 3.0);
  return transform(image, {1, 0, with_sign(pixels, positive), 0, 1, 0});
}

Image translate_y(const Image& image, double level, bool positive) {
  const int pixels = int_parameter(level, image.size.height / 3.0);
  return transform(image, {1, 0, 0, 0, 1, with_sign(pixels, positive)});
}

Image run_chain(Image image, const AugMixOptions& options, Random* random) {
  const std::span<const AugMixOperation> operations = augmix_operations();
  const int depth = options.depth > 0 ? options.depth : 1 + static_cast<int>(random->uniform() * 3);
  for (int i = 0; i < depth; ++i) {
    const auto chosen = static_cast<size_t>(random->uniform() * operations.size());
    const double level = 0.1 + random->uniform() * (options.severity - 0.1);
    const bool positive = random->uniform() <= 0.5;
    image = operations[chosen].apply(image, level, positive);
  }
  return image;
}

}  // namespace

std::span<const AugMixOperation> augmix_operations() {
  static const AugMixOperation table[] = {
      {"autocontrast", autocontrast}, {"equalize", equalize},
      {"posterize", posterize},       {"rotate", rotate},
      {"solarize", solarize},         {"shear_x", shear_x},
      {"shear_y", shear_y},           {"translate_x", translate_x},
      {"translate_y", translate_y},
  };
  return table;
}

std::vector<WeightedImage> augmix(const Image& image, const AugMixOptions& options,
                                  Random* random) {
  const auto mixed = static_cast<float>(random->uniform());
  std::vector<WeightedImage> out = {{image, 1 - mixed}};
  // Exponentials over their sum are Dirichlet(1, ..., 1).
  double sum = 0;
  std::vector<double> shares(options.width);
  for (double& share : shares) sum += share = -std::log1p(-random->uniform());
  for (const double share : shares) {
    out.push_back({run_chain(image, options, random), mixed * static_cast<float>(share / sum)});
  }
  return out;
}

}  // namespace qact::data
