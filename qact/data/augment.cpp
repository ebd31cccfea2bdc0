#include "qact/data/augment.h"

#include <algorithm>
#include <array>

#include "qact/base/fail.h"

namespace qact::data {

using image::Image;
using image::Size;

CropFlip draw_crop_flip(const Augmentation& how, base::Random* random) {
  CropFlip out;
  if (how.pad > 0) {
    out.top = static_cast<int>(random->uniform() * (2 * how.pad + 1)) - how.pad;
    out.left = static_cast<int>(random->uniform() * (2 * how.pad + 1)) - how.pad;
  }
  out.flip = how.flip && random->uniform() < 0.5;
  return out;
}

std::vector<float> normalisation_table(const Moments& moments, int channels) {
  if (!moments.mean.empty() && (moments.mean.size() != static_cast<size_t>(channels) ||
                                moments.std.size() != static_cast<size_t>(channels))) {
    base::fail("loader", "expected the mean and std of ", channels, " channels, got ",
               moments.mean.size(), " and ", moments.std.size());
  }
  std::vector<float> out(256 * channels);
  for (int c = 0; c < channels; ++c) {
    const double mean = moments.mean.empty() ? 0 : moments.mean[c];
    const double std = moments.mean.empty() ? 1 : moments.std[c];
    for (int v = 0; v < 256; ++v) {
      out[256 * c + v] = static_cast<float>((v / 255.0 - mean) / std);
    }
  }
  return out;
}

Image crop_flip(const uint8_t* pixels, Size size, const CropFlip& at) {
  Image out(size);
  for (int y = 0; y < size.height; ++y) {
    const int from_y = y + at.top;
    if (from_y < 0 || from_y >= size.height) continue;
    for (int x = 0; x < size.width; ++x) {
      const int in_row = x + at.left;
      if (in_row < 0 || in_row >= size.width) continue;
      const int from_x = at.flip ? size.width - 1 - in_row : in_row;
      std::copy_n(pixels + (int64_t{from_y} * size.width + from_x) * size.channels, size.channels,
                  out.row(y) + int64_t{x} * size.channels);
    }
  }
  return out;
}

void write_normalised(const uint8_t* pixels, Size size, const CropFlip& at,
                      const std::vector<float>& table, float* out) {
  const auto [height, width, channels] = size;
  const int first = std::clamp(-at.left, 0, width);
  const int last = std::clamp(width - at.left, first, width);
  for (int c = 0; c < channels; ++c) {
    const float* const value = &table[256 * c];
    for (int y = 0; y < height; ++y, out += width) {
      const int from_y = y + at.top;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(out, width, value[0]);
        continue;
      }
      const uint8_t* const row = pixels + int64_t{from_y} * width * channels + c;
      std::fill_n(out, first, value[0]);
      std::fill_n(out + last, width - last, value[0]);
      const int step = at.flip ? -channels : channels;
      const int start = at.flip ? width - 1 - at.left : at.left;
      for (int x = first; x < last; ++x) out[x] = value[row[start * channels + x * step]];
    }
  }
}

void write_mixed(const std::vector<WeightedImage>& terms, const std::vector<float>& table,
                 float* out) {
  const auto [height, width, channels] = terms[0].image.size;
  const int64_t plane = int64_t{height} * width;
  std::fill_n(out, plane * channels, 0.0f);
  for (const WeightedImage& term : terms) {
    for (int c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < plane; ++p) {
        out[c * plane + p] += term.weight * table[256 * c + term.image.pixels[p * channels + c]];
      }
    }
  }
}

void add_dither(Size size, const std::vector<float>& table, base::Random random, float* image) {
  const int64_t plane = int64_t{size.height} * size.width;
  for (int c = 0; c < size.channels; ++c, image += plane) {
    const float grey_level = (table[256 * c + 255] - table[256 * c]) / 255;
    uint64_t bits = 0;  // 16 for each value
    for (int64_t p = 0; p < plane; ++p, bits >>= 16) {
      if (p % 4 == 0) bits = random.bits();
      image[p] += grey_level * ((static_cast<float>(bits & 0xffff) + 0.5f) / 65536 - 0.5f);
    }
  }
}

bool needs_dither(const Split& split) {
  std::array<int64_t, 256> count = {};
  for (const uint8_t value : split.pixels) ++count[value];
  const int64_t most = *std::max_element(count.begin(), count.end());
  return 4 * most >= static_cast<int64_t>(split.pixels.size());
}

base::Random inference_dither() { return base::Random(0, base::Stream::dither); }

}  // namespace qact::data
