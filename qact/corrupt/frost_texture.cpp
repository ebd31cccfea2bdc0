#include "qact/corrupt/frost_texture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "qact/base/regular_file.h"
#include "qact/corrupt/plasma.h"
#include "qact/corrupt/rng.h"
#include "qact/image/codec.h"
#include "qact/image/colour.h"

namespace qact::corrupt {
namespace {

constexpr const char* kNames[] = {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg",
                                  "frost5.jpg"};

// Of each published texture, scaled by .2: mean and standard deviation of R, G and B, the fraction
// of the variance that is white noise (the rest is smooth), and the weight of a second field, which
// makes ice blue.
struct Statistics {
  double mean[3], deviation[3];
  double white;
  double blue[3];
};
constexpr Statistics kStatistics[] = {{{78, 149, 166}, {27, 17, 15}, .22, {-.57, 0, .37}},
                                      {{201, 205, 215}, {21, 22, 23}, .31, {0, 0, 0}},
                                      {{201, 205, 215}, {21, 22, 23}, .31, {0, 0, 0}},
                                      {{138, 153, 165}, {28, 28, 30}, .44, {0, 0, 0}},
                                      {{112, 123, 135}, {44, 43, 42}, .36, {0, 0, 0}}};
// plasma()'s decay for the smooth part: sets its correlation over distance.
constexpr double kDecay = 1.08;

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  base::expect_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("[frost] expected a readable image, got no " + path.string());
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// To mean 0 and standard deviation 1.
void standardise(std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += double{v} * v;
  const double mean = sum / values.size();
  const double deviation = std::sqrt(squares / values.size() - mean * mean);
  for (float& v : values) v = static_cast<float>((v - mean) / deviation);
}

// A plasma fractal plus white noise.
std::vector<float> field(int side, double white, Rng& rng) {
  std::vector<float> values = plasma(side, kDecay, rng);
  standardise(values);
  for (float& v : values) {
    v = static_cast<float>(std::sqrt(1 - white) * v + std::sqrt(white) * rng.normal());
  }
  standardise(values);
  return values;
}

image::Image make_texture(const Statistics& statistics, Rng rng) {
  constexpr int kSide = 256;
  image::Image image({kSide, kSide, 3});
  const std::vector<float> shared = field(kSide, statistics.white, rng);
  const std::vector<float> second = field(kSide, statistics.white, rng);
  for (size_t i = 0; i < shared.size(); ++i) {
    for (int c = 0; c < 3; ++c) {
      const double blue = statistics.blue[c];
      const double v = std::sqrt(1 - blue * blue) * shared[i] + blue * second[i];
      image.pixels[3 * i + c] = static_cast<uint8_t>(
          std::clamp(std::round(statistics.mean[c] + statistics.deviation[c] * v), 0.0, 255.0));
    }
  }
  return image;
}

// The two neighbours of each pixel of a scaled axis, with weights of 11 bits.
struct ScaledAxis {
  std::vector<int> first, second, weight_first, weight_second;
};

ScaledAxis scaled_axis(int n, double scale) {
  ScaledAxis axis;
  const int length = std::max(1, static_cast<int>(std::nearbyint(n * scale)));
  for (int i = 0; i < length; ++i) {
    const float place = static_cast<float>((i + 0.5) * (1 / scale) - 0.5);
    const int first = std::clamp(static_cast<int>(std::floor(place)), 0, n - 1);
    const float share = first < n - 1 ? std::max(place - static_cast<float>(first), 0.0f) : 0;
    const auto fixed = [](float v) { return static_cast<int>(std::nearbyint(v * 2048)); };
    axis.first.push_back(first);
    axis.second.push_back(std::min(first + 1, n - 1));
    axis.weight_first.push_back(fixed(1 - share));
    axis.weight_second.push_back(fixed(share));
  }
  return axis;
}

// Bilinear between pixel centres, without antialiasing: OpenCV's fixed point, bit for bit.
image::Image resized(const image::Image& in, double scale) {
  const ScaledAxis rows = scaled_axis(in.size.height, scale);
  const ScaledAxis columns = scaled_axis(in.size.width, scale);
  const int channels = in.size.channels, width = static_cast<int>(columns.first.size());
  image::Image out({static_cast<int>(rows.first.size()), width, channels});
  for (int y = 0; y < out.size.height; ++y) {
    const uint8_t *upper = in.row(rows.first[y]), *lower = in.row(rows.second[y]);
    for (int i = 0; i < width * channels; ++i) {
      const int x = i / channels, c = i % channels;
      const int left = columns.first[x] * channels + c, right = columns.second[x] * channels + c;
      const auto across = [&](const uint8_t* row) {
        return (row[left] * columns.weight_first[x] + row[right] * columns.weight_second[x]) >> 4;
      };
      const int sum = ((rows.weight_first[y] * across(upper)) >> 16) +
                      ((rows.weight_second[y] * across(lower)) >> 16);
      out.row(y)[i] = static_cast<uint8_t>((sum + 2) >> 2);
    }
  }
  return out;
}

}  // namespace

FrostTextures FrostTextures::from_folder(const std::filesystem::path& folder, std::string name) {
  if (!std::filesystem::is_directory(folder)) {
    throw std::runtime_error("[frost] expected a folder with frost1.png to frost5.jpg, got " +
                             folder.string());
  }
  FrostTextures textures;
  textures.name_ = std::move(name);
  for (const char* file : kNames) {
    const std::vector<uint8_t> bytes = read_file(folder / file);
    try {
      textures.images_.push_back(image::decode_image(bytes, 3));
      textures.grey_.push_back(image::decode_image_grey(bytes));
    } catch (const std::exception& error) {
      throw std::runtime_error((folder / file).string() + ": " + error.what());
    }
  }
  return textures;
}

FrostTextures FrostTextures::procedural() {
  FrostTextures textures;
  textures.name_ = "procedural";
  textures.seamless_ = true;
  int64_t index = 0;
  for (const Statistics& statistics : kStatistics) {
    textures.images_.push_back(make_texture(statistics, Rng(0, "frost_texture", 0, index++)));
    textures.grey_.push_back(image::with_channels(textures.images_.back(), 1));
  }
  return textures;
}

std::vector<image::Image> FrostTextures::prepared(double scale, int channels) const {
  std::vector<image::Image> out = channels == 1 ? grey_ : images_;
  for (image::Image& image : out) {
    if (!seamless_ && scale != 1) image = resized(image, scale);
  }
  return out;
}

}  // namespace qact::corrupt
