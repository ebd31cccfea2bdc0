#include "qact/corrupt/frost_texture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "qact/corrupt/draw.h"
#include "qact/corrupt/plasma.h"
#include "qact/image/codec.h"
#include "qact/image/colour.h"

namespace qact::corrupt {
namespace {

constexpr const char* kNames[] = {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg",
                                  "frost5.jpg"};

// Per published picture: mean and deviation of R, G and B, the share of the variance that
// is white noise once the picture is scaled by .2 (the rest is smooth), and how much of each
// channel is a second field that makes ice blue.
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
// How fast the smooth part's displacement shrinks: its correlation over distance.
constexpr double kDecay = 1.08;

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("[frost] expected a readable picture, got no " + path.string());
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Mean 0, deviation 1.
void standardise(std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += double{v} * v;
  const double mean = sum / values.size();
  const double deviation = std::sqrt(squares / values.size() - mean * mean);
  for (float& v : values) v = static_cast<float>((v - mean) / deviation);
}

// A plasma fractal for what is smooth, and white noise.
std::vector<float> field(int side, double white, Draw& draw) {
  std::vector<float> values = plasma(side, kDecay, draw);
  standardise(values);
  for (float& v : values) {
    v = static_cast<float>(std::sqrt(1 - white) * v + std::sqrt(white) * draw.normal());
  }
  standardise(values);
  return values;
}

image::Image make_texture(const Statistics& statistics, Draw draw) {
  constexpr int kSide = 256;
  image::Image picture({kSide, kSide, 3});
  const std::vector<float> shared = field(kSide, statistics.white, draw);
  const std::vector<float> second = field(kSide, statistics.white, draw);
  for (size_t i = 0; i < shared.size(); ++i) {
    for (int c = 0; c < 3; ++c) {
      const double blue = statistics.blue[c];
      const double v = std::sqrt(1 - blue * blue) * shared[i] + blue * second[i];
      picture.pixels[3 * i + c] = static_cast<uint8_t>(
          std::clamp(std::round(statistics.mean[c] + statistics.deviation[c] * v), 0.0, 255.0));
    }
  }
  return picture;
}

// Bilinear between pixel centres, without smoothing first.
image::Image resized(const image::Image& in, double scale) {
  const auto length = [&](int n) {
    return std::max(1, static_cast<int>(std::nearbyint(n * scale)));
  };
  image::Image out({length(in.size.height), length(in.size.width), in.size.channels});
  const auto position = [&](int i, int n) {
    return std::clamp((i + 0.5) / scale - 0.5, 0.0, n - 1.0);
  };
  const int channels = in.size.channels;
  for (int y = 0; y < out.size.height; ++y) {
    const double sy = position(y, in.size.height);
    const int top = static_cast<int>(sy), bottom = std::min(top + 1, in.size.height - 1);
    for (int x = 0; x < out.size.width; ++x) {
      const double sx = position(x, in.size.width), fx = sx - std::floor(sx), fy = sy - top;
      const int left = static_cast<int>(sx), right = std::min(left + 1, in.size.width - 1);
      for (int c = 0; c < channels; ++c) {
        const auto at = [&](int yy, int xx) { return in.row(yy)[xx * channels + c]; };
        const double value = (1 - fy) * ((1 - fx) * at(top, left) + fx * at(top, right)) +
                             fy * ((1 - fx) * at(bottom, left) + fx * at(bottom, right));
        out.row(y)[x * channels + c] = static_cast<uint8_t>(value + 0.5);
      }
    }
  }
  return out;
}

}  // namespace

FrostTextures FrostTextures::from_folder(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw std::runtime_error("[frost] expected a folder with frost1.png to frost5.jpg, got " +
                             folder.string());
  }
  FrostTextures textures;
  for (const char* name : kNames) {
    const std::vector<uint8_t> bytes = read_file(folder / name);
    try {
      textures.pictures_.push_back(image::decode_picture(bytes, 3));
    } catch (const std::exception& error) {
      throw std::runtime_error((folder / name).string() + ": " + error.what());
    }
  }
  return textures;
}

FrostTextures FrostTextures::procedural() {
  FrostTextures textures;
  textures.seamless_ = true;
  int64_t index = 0;
  for (const Statistics& statistics : kStatistics) {
    textures.pictures_.push_back(make_texture(statistics, Draw(0, "frost_texture", 0, index++)));
  }
  return textures;
}

std::vector<image::Image> FrostTextures::prepared(double scale, int channels) const {
  std::vector<image::Image> out;
  for (const image::Image& picture : pictures_) {
    image::Image scaled = seamless_ || scale == 1 ? picture : resized(picture, scale);
    out.push_back(image::with_channels(std::move(scaled), channels));
  }
  return out;
}

}  // namespace qact::corrupt
