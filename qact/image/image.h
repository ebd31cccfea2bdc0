// Images in memory: 8 bits a value, rows of pixels, channels last (HWC).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qact::image {

struct Size {
  int height = 0;
  int width = 0;
  int channels = 0;  // 1 grey, 3 RGB

  int64_t values() const { return int64_t{height} * width * channels; }
  bool operator==(const Size&) const = default;
};

// One image that owns its pixels.
struct Image {
  Size size;
  std::vector<uint8_t> pixels;

  Image() = default;
  explicit Image(Size s) : size(s), pixels(s.values()) {}

  uint8_t* row(int y) { return pixels.data() + int64_t{y} * size.width * size.channels; }
  const uint8_t* row(int y) const {
    return pixels.data() + int64_t{y} * size.width * size.channels;
  }
};

}  // namespace qact::image
