#include "tests/corrupt/test_images.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "qact/base/random.h"
#include "qact/image/png.h"
#include "tests/base/scratch_folder.h"

namespace qact::test {
namespace {

class Random : public base::Random {
 public:
  using base::Random::Random;
  int below(int n) { return static_cast<int>((bits() >> 32) * static_cast<uint64_t>(n) >> 32); }
};

bool inside(int x, int y, int cx, int cy, int rx, int ry) {
  const int64_t a = int64_t{x - cx} * ry, b = int64_t{y - cy} * rx, r = int64_t{rx} * ry;
  return a * a + b * b <= r * r;
}

image::Image rings(Random random, int side) {
  image::Image out({side, side, 1});
  for (int k = 0; k < 3; ++k) {
    const int cx = side / 4 + random.below(side / 2), cy = side / 4 + random.below(side / 2);
    const int rx = 4 + random.below(side / 4), ry = 4 + random.below(side / 4);
    const int ink = 128 + random.below(128);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        if (inside(x, y, cx, cy, rx, ry) && !inside(x, y, cx, cy, rx - 3, ry - 3)) {
          out.row(y)[x] = static_cast<uint8_t>(ink);
        }
      }
    }
  }
  return out;
}

}  // namespace

image::Image test_image(int64_t index, int side, int channels) {
  Random random(7, static_cast<uint64_t>(index));
  if (channels == 1) return rings(random, side);
  std::array<std::array<int, 3>, 4> corner;
  for (auto& colour : corner) {
    for (int& v : colour) v = random.below(256);
  }
  std::vector<int> values(side * side * 3);
  const int end = side - 1;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      for (int c = 0; c < 3; ++c) {
        values[(y * side + x) * 3 + c] =
            ((end - y) * (end - x) * corner[0][c] + (end - y) * x * corner[1][c] +
             y * (end - x) * corner[2][c] + y * x * corner[3][c]) /
            (end * end);
      }
    }
  }
  for (int k = 0; k < 6; ++k) {
    const int cx = random.below(side), cy = random.below(side);
    const int rx = 2 + random.below(side / 3), ry = 2 + random.below(side / 3);
    std::array<int, 3> colour;
    for (int& v : colour) v = random.below(256);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        if (!inside(x, y, cx, cy, rx, ry)) continue;
        std::copy(colour.begin(), colour.end(), &values[(y * side + x) * 3]);
      }
    }
  }
  image::Image out({side, side, 3});
  for (size_t i = 0; i < values.size(); ++i) {
    const int texture = static_cast<int>(random.bits() & 7) - 4;
    out.pixels[i] = static_cast<uint8_t>(std::clamp(values[i] + texture, 0, 255));
  }
  return out;
}

std::vector<uint8_t> test_images(int64_t count, int side, int channels) {
  std::vector<uint8_t> out;
  for (int64_t i = 0; i < count; ++i) {
    const image::Image one = test_image(i, side, channels);
    out.insert(out.end(), one.pixels.begin(), one.pixels.end());
  }
  return out;
}

std::shared_ptr<const corrupt::FrostTextures> synthetic_textures() {
  constexpr uint8_t kGamma[] = {0, 0, 0,    4,    'g', 'A',  'M',  'A',
                                0, 0, 0xb1, 0x8f, 11,  0xfc, 0x61, 5};
  constexpr int kHeader = 33;  // the signature and IHDR
  const ScratchFolder scratch;
  const char* names[] = {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"};
  for (int i = 0; i < 5; ++i) {
    auto bytes = image::encode_png(test_image(1000 + i, 300 + 20 * i, 3));
    if (i == 0) bytes.insert(bytes.begin() + kHeader, std::begin(kGamma), std::end(kGamma));
    std::ofstream(scratch.path / names[i], std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  return std::make_shared<const corrupt::FrostTextures>(
      corrupt::FrostTextures::from_folder(scratch.path, "synthetic"));
}

}  // namespace qact::test
